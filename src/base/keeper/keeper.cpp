#include "src/base/keeper/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <list>
#include <map>
#include <set>

#include "src/base/abstract_socket.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

std::string socket_name(const std::string& name) { return fmt::format("chorale-keeper-{}-{}", getuid(), name); }

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

// The loop of the keeper process.
class KeeperLoop {
 public:
  explicit KeeperLoop(Descriptor listening) : listening_(std::move(listening)) {}

  [[noreturn]] void run() {
    for (;;) {
      std::vector<pollfd> files{{listening_.get(), POLLIN, 0}};
      for (const Descriptor& line : lines_) files.push_back({line.get(), POLLIN, 0});
      constexpr int look_milliseconds = 1000;
      poll(files.data(), files.size(), look_milliseconds);
      if (Descriptor line{accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)}; line && is_own_user(line.get()))
        lines_.push_back(std::move(line));
      std::erase_if(lines_, [this](const Descriptor& line) { return !hear(line.get()); });
      drop_earlier_starts();
    }
  }

 private:
  using Files = std::array<KeptFiles, kept_generations>;

  // Returns false if the connection has ended.
  bool hear(int line) {
    for (;;) {
      auto message = receive_files(line, MSG_DONTWAIT);
      if (!message) return true;
      if (message->text.empty()) return false;
      answer(line, *message);
    }
  }

  void answer(int line, PassedFiles& message) {
    long long start = 0;
    int rank = 0, size = 0;
    if (std::sscanf(message.text.c_str(), "keep %lld %d %d", &start, &rank, &size) == 3 &&
        message.files.size() == 2 * kept_generations) {
      drop_all_but(start);
      Kept& kept = kept_[{start, rank}];
      kept.size = size;
      for (std::size_t g = 0; g < kept.files.size(); ++g)
        kept.files[g] = {std::move(message.files[2 * g]), std::move(message.files[2 * g + 1])};
      send_files(line, "kept");
    } else if (std::sscanf(message.text.c_str(), "give %lld %d", &start, &rank) == 2) {
      const auto kept = kept_.find({start, rank});
      std::vector<int> files;
      if (kept != kept_.end())
        for (const KeptFiles& one : kept->second.files) files.insert(files.end(), {one.info.get(), one.image.get()});
      send_files(line, files.empty() ? "none" : "given", files);
    } else if (message.text == "list") {
      std::string text = "list\n";
      for (const KeptRank& one : ranks())
        if (const std::string words =
                fmt::format("{} {} {} {} {}\n", one.start, one.rank, one.size, one.steps[0], one.steps[1]);
            text.size() + words.size() <= longest_message)
          text += words;
      send_files(line, text);
    } else {
      send_files(line, "refused");  // for example if this process has too few descriptors for the files
    }
  }

  // Keeps this start, and the start with the newest complete step. Starts that ended before their first snapshot would
  // otherwise each take memory for two.
  void drop_all_but(std::int64_t start) {
    const std::vector<KeptStep> complete = complete_steps(ranks());
    std::erase_if(kept_, [&](const auto& one) {
      return one.first.first != start && (complete.empty() || one.first.first != complete[0].start);
    });
  }

  std::vector<KeptRank> ranks() const {
    std::vector<KeptRank> all;
    for (const auto& [where, kept] : kept_) {
      KeptRank one{.start = where.first, .rank = where.second, .size = kept.size};
      for (std::size_t g = 0; g < kept.files.size(); ++g) one.steps[g] = kept_step(kept.files[g].info.get());
      all.push_back(one);
    }
    return all;
  }

  void drop_earlier_starts() {
    if (kept_.empty() || kept_.begin()->first.first == kept_.rbegin()->first.first) return;
    std::int64_t newest = 0;
    for (const KeptStep& step : complete_steps(ranks())) newest = std::max(newest, step.start);
    std::erase_if(kept_, [&](const auto& one) { return one.first.first < newest; });
  }

  struct Kept {
    int size = 1;
    Files files;
  };
  Descriptor listening_;
  std::list<Descriptor> lines_;
  std::map<std::pair<std::int64_t, int>, Kept> kept_;  // by start and rank
};

}  // namespace

std::int64_t kept_step(int info) {
  KeptHead head{.magic = 0};
  if (pread(info, &head, sizeof head, 0) != sizeof head || head.magic != KeptHead::format) return -1;
  return head.step;
}

std::vector<KeptStep> complete_steps(const std::vector<KeptRank>& ranks) {
  std::map<std::int64_t, std::vector<const KeptRank*>> starts;
  for (const KeptRank& one : ranks) starts[one.start].push_back(&one);
  std::vector<KeptStep> complete;
  for (const auto& [start, members] : starts) {
    std::set<int> numbers;
    for (const KeptRank* one : members) numbers.insert(one->rank);
    if (std::ssize(numbers) != members[0]->size) continue;
    for (const std::int64_t step : members[0]->steps)
      if (step >= 0 &&
          std::ranges::all_of(members, [&](const KeptRank* one) { return std::ranges::count(one->steps, step) > 0; }))
        complete.push_back({start, step, members[0]->size});
  }
  std::ranges::sort(complete, [](const KeptStep& a, const KeptStep& b) {
    return std::pair(a.step, a.start) > std::pair(b.step, b.start);
  });
  return complete;
}

pid_t Keeper::start(const std::string& name) {
  const AbstractAddress address(socket_name(name));
  Descriptor listening = new_socket();
  if (!listening || bind(listening.get(), address.get(), address.length()) != 0 || listen(listening.get(), 4096) != 0)
    return -1;
  fcntl(listening.get(), F_SETFL, O_NONBLOCK);
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  setpgid(0, 0);
  prctl(PR_SET_NAME, "chorale-keeper");
  for (const int ignored : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(ignored, SIG_IGN);
  constexpr int kept = 3;
  dup2(listening.release(), kept);
  close_range(kept + 1, ~0u, 0);
  rlimit files{};  // each rank of each start needs four
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  try {
    KeeperLoop{Descriptor(kept)}.run();
  } catch (const std::exception&) {}
  _exit(1);  // the supervisor starts another keeper; no code of the supervisor may run in this process
}

KeeperLine::KeeperLine(const std::string& name) : line_(new_socket()) {
  const AbstractAddress address(socket_name(name));
  if (name.empty() || connect(line_.get(), address.get(), address.length()) != 0 || !is_own_user(line_.get())) line_.reset();
}

PassedFiles KeeperLine::ask(const std::string& request, const std::vector<int>& files) {
  constexpr int patience_milliseconds = 10000;
  if (!line_ || !send_files(line_.get(), request, files)) {
    line_.reset();
    return {};
  }
  pollfd one{line_.get(), POLLIN, 0};
  if (poll(&one, 1, patience_milliseconds) == 1)
    if (auto answer = receive_files(line_.get(), 0); answer && !answer->text.empty()) return std::move(*answer);
  line_.reset();
  return {};
}

bool KeeperLine::keep(const KeptRank& rank, const std::array<KeptFiles, kept_generations>& files) {
  std::vector<int> numbers;
  for (const KeptFiles& one : files) numbers.insert(numbers.end(), {one.info.get(), one.image.get()});
  return ask(fmt::format("keep {} {} {}", rank.start, rank.rank, rank.size), numbers).text == "kept";
}

std::vector<KeptRank> KeeperLine::list() {
  std::vector<KeptRank> ranks;
  const std::string text = ask("list").text;
  for (const std::string& line : split(text, '\n')) {
    long long start = 0, first = 0, second = 0;
    int rank = 0, size = 0;
    if (std::sscanf(line.c_str(), "%lld %d %d %lld %lld", &start, &rank, &size, &first, &second) == 5)
      ranks.push_back({start, rank, size, {first, second}});
  }
  return ranks;
}

std::array<KeptFiles, kept_generations> KeeperLine::take(std::int64_t start, int rank) {
  std::array<KeptFiles, kept_generations> taken;
  PassedFiles given = ask(fmt::format("give {} {}", start, rank));
  if (given.files.size() != 2 * kept_generations) return taken;
  for (std::size_t g = 0; g < taken.size(); ++g)
    taken[g] = {std::move(given.files[2 * g]), std::move(given.files[2 * g + 1])};
  return taken;
}

}  // namespace chorale
