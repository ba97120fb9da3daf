#include "src/base/keeper/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <set>

#include <chorale/clock.hpp>
#include "src/base/abstract_socket.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/base/wait.hpp"

namespace chorale {
namespace {

std::string socket_name(const std::string& name) { return fmt::format("chorale-keeper-{}-{}", getuid(), name); }

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

// Returns no socket if the name is taken.
Descriptor listening_socket(const std::string& name) {
  const AbstractAddress address(socket_name(name));
  Descriptor listening = new_socket();
  if (!listening || bind(listening.get(), address.get(), address.length()) != 0 || listen(listening.get(), 4096) != 0)
    return {};
  fcntl(listening.get(), F_SETFL, O_NONBLOCK);
  return listening;
}

void prepare_process() {
  prctl(PR_SET_NAME, "chorale-keeper");
  for (const int ignored : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(ignored, SIG_IGN);
  rlimit files{};  // each rank of each start needs four
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

// The loop of the keeper process.
class KeeperLoop {
 public:
  explicit KeeperLoop(Descriptor listening) : listening_(std::move(listening)), supervisor_(clock_) {}
  KeeperLoop(Descriptor listening, std::string host, const std::string& supervisor) : KeeperLoop(std::move(listening)) {
    host_ = std::move(host);
    supervisor_.join(supervisor);
    if (!supervisor_.any())
      throw Error(Exit::runtime, "the supervisor of the launch cannot be reached", fmt::format("from {}", host_name()),
                  "check the network between the hosts");
  }

  // Returns when the supervisor is gone, if it is on another host; otherwise never.
  void run() {
    for (;;) {
      std::vector<pollfd> files{{listening_.get(), POLLIN, 0}};
      for (const Descriptor& line : lines_) files.push_back({line.get(), POLLIN, 0});
      supervisor_.add_to(files);
      constexpr int look_milliseconds = 500;
      poll(files.data(), files.size(), look_milliseconds);
      if (supervisor_.any() && !hear_supervisor()) return;
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

  // Returns false if the supervisor is gone.
  bool hear_supervisor() {
    const auto list_of_host = [this] { return GuardWords{.host = host_, .kept = list()}; };
    for (const auto& [from, words] : supervisor_.move())
      if (words.asks) supervisor_.say(list_of_host());
    supervisor_.beat(list_of_host);
    const OtherGuards::Guard& line = supervisor_.guards().front();
    return !line.ended && line.silent < time_limit(60);
  }

  std::string list() const {
    std::string text;
    for (const KeptRank& one : ranks())
      if (const std::string words = to_text(one) + "\n"; text.size() + words.size() < longest_message) text += words;
    return text;
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
      const std::string text = list();
      send_files(line, text.empty() ? "\n" : text);
    } else {
      send_files(line, "refused");  // for example if this process has too few descriptors for the files
    }
  }

  // Keeps this start, and all starts that can have the newest step of all hosts. Starts that ended before their first
  // snapshot would otherwise each take memory for two.
  void drop_all_but(std::int64_t start) {
    drop_earlier_starts();
    std::set<std::int64_t> useful{start};
    for (const KeptRank& one : ranks())
      if (one.steps[0] >= 0 || one.steps[1] >= 0) useful.insert(one.start);
    std::erase_if(kept_, [&](const auto& one) { return !useful.contains(one.first.first); });
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
    for (const KeptRank& one : ranks())
      if (one.steps[0] >= 0 && one.steps[1] >= 0) settled_ = std::max(settled_, one.start);
    std::erase_if(kept_, [this](const auto& one) { return one.first.first < settled_; });
  }

  struct Kept {
    int size = 1;
    Files files;
  };
  SystemClock clock_;
  Descriptor listening_;
  OtherGuards supervisor_;
  std::string host_;
  std::int64_t settled_ = 0;  // the newest start of which all ranks have kept a step
  std::list<Descriptor> lines_;
  std::map<std::pair<std::int64_t, int>, Kept> kept_;  // by start and rank
};

}  // namespace

std::int64_t kept_step(int info) {
  KeptHead head{.magic = 0};
  if (pread(info, &head, sizeof head, 0) != sizeof head || head.magic != KeptHead::format) return -1;
  return head.step;
}

std::string to_text(const KeptRank& rank) {
  return fmt::format("{} {} {} {} {}", rank.start, rank.rank, rank.size, rank.steps[0], rank.steps[1]);
}

std::vector<KeptRank> kept_ranks_in(const std::string& lines) {
  std::vector<KeptRank> ranks;
  for (const std::string& line : split(lines, '\n')) {
    long long start = 0, first = 0, second = 0;
    int rank = 0, size = 0;
    if (std::sscanf(line.c_str(), "%lld %d %d %lld %lld", &start, &rank, &size, &first, &second) == 5)
      ranks.push_back({start, rank, size, {first, second}});
  }
  return ranks;
}

std::vector<KeptStep> complete_steps(const std::vector<KeptRank>& ranks) {
  struct Kept {
    int size = 0;
    std::set<int> ranks;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Kept> steps;  // by start and step
  for (const KeptRank& one : ranks)
    for (const std::int64_t step : one.steps) {
      if (step < 0) continue;
      Kept& kept = steps[{one.start, step}];
      kept.size = one.size;
      kept.ranks.insert(one.rank);
    }
  std::vector<KeptStep> complete;
  for (const auto& [where, kept] : steps)
    if (std::ssize(kept.ranks) == kept.size) complete.push_back({where.first, where.second, kept.size});
  std::ranges::sort(complete, [](const KeptStep& a, const KeptStep& b) {
    return std::pair(a.step, a.start) > std::pair(b.step, b.start);
  });
  return complete;
}

bool Keeper::keep(const std::string& name, const std::string& host, const std::string& supervisor) {
  Descriptor listening = listening_socket(name);
  if (!listening) {
    if (!KeeperLine(name).is_open())
      throw Error(Exit::runtime, "the keeper cannot listen", fmt::format("{}: {}", host_name(), std::strerror(errno)),
                  "end the process that has its name, or raise ulimit -n");
    return false;
  }
  prepare_process();
  KeeperLoop(std::move(listening), host, supervisor).run();
  return true;
}

pid_t Keeper::start(const std::string& name) {
  Descriptor listening = listening_socket(name);
  if (!listening) return -1;
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  setpgid(0, 0);
  constexpr int kept = 3;
  dup2(listening.release(), kept);
  close_range(kept + 1, ~0u, 0);
  prepare_process();
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

bool KeeperLine::is_alive() const {
  pollfd one{line_.get(), POLLIN, 0};  // a keeper says nothing unasked, so only its end can be read
  return is_open() && poll(&one, 1, 0) == 0;
}

bool KeeperLine::keep(const KeptRank& rank, const std::array<KeptFiles, kept_generations>& files) {
  std::vector<int> numbers;
  for (const KeptFiles& one : files) numbers.insert(numbers.end(), {one.info.get(), one.image.get()});
  return ask(fmt::format("keep {} {} {}", rank.start, rank.rank, rank.size), numbers).text == "kept";
}

std::vector<KeptRank> KeeperLine::list() { return kept_ranks_in(ask("list").text); }

std::array<KeptFiles, kept_generations> KeeperLine::take(std::int64_t start, int rank) {
  std::array<KeptFiles, kept_generations> taken;
  PassedFiles given = ask(fmt::format("give {} {}", start, rank));
  if (given.files.size() != 2 * kept_generations) return taken;
  for (std::size_t g = 0; g < taken.size(); ++g)
    taken[g] = {std::move(given.files[2 * g]), std::move(given.files[2 * g + 1])};
  return taken;
}

}  // namespace chorale
