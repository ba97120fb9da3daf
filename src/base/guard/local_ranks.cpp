#include "src/base/guard/local_ranks.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/base/guard/last_words.hpp"
#include "src/base/guard/leftovers.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The state and the tracer of a process; a tracer is a debugger.
struct Condition {
  char state = 'X';
  bool traced = false;
};
Condition condition_of(int pid) {
  const std::string status = contents_of(fmt::format("/proc/{}/status", pid)).value_or("");
  const auto field = [&](std::string_view name) {
    const std::size_t at = status.find(name);
    return at == std::string::npos ? 'X' : status[at + name.size()];
  };
  const char tracer = field("TracerPid:\t");
  return {field("State:\t"), tracer != '0' && tracer != 'X'};
}

}  // namespace

void LocalRanks::add_to(std::vector<pollfd>& files) const {
  files.push_back({listening_.get(), POLLIN, 0});
  for (const Rank& rank : ranks_)
    if (rank.here) files.push_back({rank.line.get(), POLLIN, 0});
}

// Takes in one rank of this user. It sends the file of its page.
void LocalRanks::take_in() {
  Descriptor line(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!line) return;
  char byte = 0;
  iovec data{&byte, 1};
  int file = -1;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1, message.msg_control = room, message.msg_controllen = sizeof room;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (recvmsg(line.get(), &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message) ||
      getsockopt(line.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != getuid())
    return;
  std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  const Descriptor memory(file);
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  ranks_.push_back({std::move(line), std::move(process), SharedPage(memory.get()), peer.pid});
  ++came_;
}

std::vector<LocalRanks::News> LocalRanks::move() {
  std::vector<News> news;
  if (pollfd one{listening_.get(), POLLIN, 0}; poll(&one, 1, 0) > 0) take_in();
  for (Rank& rank : ranks_) {
    char text[512];
    const ssize_t got = rank.here ? recv(rank.line.get(), text, sizeof text, MSG_DONTWAIT) : -1;
    if (got > 0) news.push_back({rank.page->rank, {text, static_cast<std::size_t>(got)}});
    if (!rank.here || got > 0 || (got < 0 && errno == EAGAIN)) continue;
    rank.here = false;
    if (rank.page->fate != FlightPage::Fate::running) continue;
    rank.end = last_words(rank.pid, rank.process.get(), clock_);
    news.push_back({rank.page->rank, ""});
  }
  return news;
}

void LocalRanks::answer(int rank, const std::string& text) {
  for (const Rank& one : ranks_)
    if (one.page->rank == rank) send(one.line.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool LocalRanks::are_over(bool no_more_come) const {
  const bool all_ended = std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.here; });
  return all_ended && came_ > 0 && (no_more_come || came_ >= expected_);
}

bool LocalRanks::any_failed() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.page->fate == FlightPage::Fate::failed; });
}

Look LocalRanks::look() const {
  Look sum;
  for (const Rank& rank : ranks_) {
    sum.done += rank.page->beats + rank.page->moved;
    if (!rank.here) continue;
    const Condition now = condition_of(rank.pid);
    const double limit = rank.page->patience;
    const bool waits = rank.page->waits;
    sum.add({0, waits ? limit : never, limit, 1, now.state == 'T', now.state == 'D', waits, now.traced});
  }
  return sum;
}

std::vector<SeenRank> LocalRanks::seen() const {
  std::vector<SeenRank> all;
  for (const Rank& rank : ranks_) all.push_back({*rank.page, rank.here ? condition_of(rank.pid).state : 'X', rank.end});
  std::ranges::sort(all, {}, [](const SeenRank& rank) { return rank.page.rank; });
  return all;
}

void LocalRanks::lose(const std::string& why) {
  for (const Rank& rank : ranks_) {
    if (!rank.here) continue;
    leftovers_.merge(shared_files_of(rank.pid));
    put(rank.page->reason, why);
    std::atomic_ref(rank.page->lost).store(1, std::memory_order_release);
  }
}

void LocalRanks::end() {
  for (const Rank& rank : ranks_)
    if (rank.here) syscall(SYS_pidfd_send_signal, rank.process.get(), SIGKILL, nullptr, 0);
}

}  // namespace chorale
