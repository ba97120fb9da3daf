#include "src/base/guard/local_ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "src/base/guard/last_words.hpp"
#include "src/base/host.hpp"
#include "src/base/passed_files.hpp"

namespace chorale {

void LocalRanks::add_to(std::vector<pollfd>& files) const {
  files.push_back({listening_.get(), POLLIN, 0});
  for (const Newcomer& newcomer : newcomers_) files.push_back({newcomer.line.get(), POLLIN, 0});
  for (const Rank& rank : ranks_)
    if (rank.here) files.push_back({rank.line.get(), POLLIN, 0});
}

// Accepts only processes of this user. No process can make the guard wait.
void LocalRanks::take_in() {
  constexpr double patience_seconds = 5;
  for (;;) {
    Descriptor line(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!line) break;
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(line.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid())
      newcomers_.push_back({std::move(line), peer.pid, clock_.seconds()});
  }
  for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end();)
    newcomer = show_in(*newcomer) || clock_.seconds() - newcomer->came > patience_seconds ? newcomers_.erase(newcomer)
                                                                                          : newcomer + 1;
}

// The first message of a rank contains the file descriptor of the rank's page.
bool LocalRanks::show_in(const Newcomer& newcomer) {
  const auto message = receive_files(newcomer.line.get(), MSG_DONTWAIT);
  if (!message) return false;
  if (message->files.size() != 1) return true;
  const Descriptor& memory = message->files[0];
  const int file = memory.get();
  struct stat about {};  // a file that is too short, or that can still be truncated, could crash this process when it reads
                         // the page
  if (fstat(file, &about) != 0 || about.st_size < static_cast<off_t>(sizeof(FlightPage)) ||
      (fcntl(file, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    return true;
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, newcomer.pid, 0)));
  ranks_.push_back({Descriptor(dup(newcomer.line.get())), std::move(process), SharedPage(memory.get()), newcomer.pid,
                    condition_of(newcomer.pid).parent});
  changed_ = clock_.seconds();
  return true;
}

std::vector<LocalRanks::News> LocalRanks::move(bool ask_how_they_ended) {
  std::vector<News> news;
  take_in();
  for (Rank& rank : ranks_) {
    char text[4096];
    const ssize_t got = rank.here ? recv(rank.line.get(), text, sizeof text, MSG_DONTWAIT) : -1;
    if (got > 0) news.push_back({rank.page->rank, {text, static_cast<std::size_t>(got)}});
    if (!rank.here || got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) continue;
    rank.here = false;
    changed_ = clock_.seconds();
    if (rank.page->fate != FlightPage::Fate::running || !ask_how_they_ended) continue;
    rank.end = last_words(rank.pid, rank.process.get(), clock_);
    news.push_back({rank.page->rank, ""});
  }
  return news;
}

void LocalRanks::answer(int rank, const std::string& text) {
  for (const Rank& one : ranks_)
    if (one.page->rank == rank) send(one.line.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The launcher waits for the guard process, because this process keeps stderr open. Therefore the guard does not wait long
// for ranks that never connect.
bool LocalRanks::are_over() const {
  constexpr double patience_seconds = 3;
  if (!newcomers_.empty() || std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.here; })) return false;
  const bool all_came = expected_ > 0 && static_cast<int>(ranks_.size()) >= expected_;
  return all_came || clock_.seconds() - changed_ > patience_seconds;
}

bool LocalRanks::holds(int rank) const {
  return std::ranges::any_of(ranks_, [&](const Rank& one) { return one.page->rank == rank; });
}

std::optional<SeenRank> LocalRanks::failed() const {
  for (const Rank& rank : ranks_)
    if (std::atomic_ref(rank.page->fate).load(std::memory_order_acquire) == FlightPage::Fate::failed) return seen(rank);
  return {};
}

bool LocalRanks::asked_to_end() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.page->asked_to_end || rank.now.asked_to_end; });
}

bool LocalRanks::orphaned() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.here && rank.now.parent != rank.parent; });
}

LocalRanks::Condition LocalRanks::condition_of(int pid) {
  const std::string status = contents_of(fmt::format("/proc/{}/status", pid)).value_or("");
  const auto field = [&](std::string_view name) {
    const std::size_t at = status.find(name);
    return at == std::string::npos ? "" : status.c_str() + at + name.size();
  };
  const std::uint64_t waiting = std::strtoull(field("ShdPnd:\t"), nullptr, 16);
  const auto is_waiting = [&](int signal) { return (waiting >> (signal - 1)) & 1; };
  return {status.empty() ? 'X' : *field("State:\t"), std::atoi(field("PPid:\t")), std::atoi(field("TracerPid:\t")) != 0,
          is_waiting(SIGTERM) || is_waiting(SIGINT)};
}

Look LocalRanks::look() {
  Look sum{.ranks = static_cast<int>(ranks_.size())};
  for (Rank& rank : ranks_) {
    sum.done += rank.page->heartbeats + rank.page->moved;
    sum.idled += rank.page->idles;
    if (!rank.here) continue;
    const bool asked = rank.now.asked_to_end;
    rank.now = condition_of(rank.pid);
    if (rank.now.state == 'X') rank.now.parent = rank.parent;  // the process has just ended
    rank.now.asked_to_end |= asked;
    const double limit = rank.page->patience;
    const bool waits = rank.page->waits;
    sum.add({.waiting = waits ? limit : never,
             .any = limit,
             .here = 1,
             .waiters = waits,
             .stopped = rank.now.state == 'T',
             .blocked = rank.now.state == 'D',
             .traced = rank.now.traced});
  }
  return sum;
}

SeenRank LocalRanks::seen(const Rank& rank) {
  return {*rank.page, rank.here ? condition_of(rank.pid).state : 'X', rank.end};
}

std::vector<SeenRank> LocalRanks::seen() const {
  std::vector<SeenRank> all;
  for (const Rank& rank : ranks_) all.push_back(seen(rank));
  return all;
}

void LocalRanks::mark() {
  for (Rank& rank : ranks_) rank.idles_before = rank.page->idles;
}

std::vector<SeenRank> LocalRanks::late() const {
  std::vector<SeenRank> found;
  for (const Rank& rank : ranks_)
    if (rank.here && rank.page->idles == rank.idles_before) found.push_back(seen(rank));
  return found;
}

std::vector<SeenRank> LocalRanks::waiting() const {
  std::vector<SeenRank> found;
  for (const Rank& rank : ranks_)
    if (rank.here && rank.page->idles != rank.idles_before) found.push_back(seen(rank));
  return found;
}

void LocalRanks::judged() {
  for (const Rank& rank : ranks_) std::atomic_ref(rank.page->judged).fetch_add(1, std::memory_order_relaxed);
}

void LocalRanks::lose(const std::string& why, int exit_code) {
  for (const Rank& rank : ranks_) {
    if (!rank.here) continue;
    put(rank.page->reason, why);
    std::atomic_ref(rank.page->lost).store(exit_code, std::memory_order_release);
  }
}

void LocalRanks::signal(int number) {
  for (const Rank& rank : ranks_)
    if (rank.here) syscall(SYS_pidfd_send_signal, rank.process.get(), number, nullptr, 0);
}

void LocalRanks::ask_to_end() { signal(SIGUSR1); }
void LocalRanks::end() { signal(SIGKILL); }

std::vector<int> LocalRanks::numbers() const {
  std::vector<int> numbers;
  for (const Rank& rank : ranks_) numbers.push_back(rank.page->rank);
  return numbers;
}

}  // namespace chorale
