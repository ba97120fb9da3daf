#include "src/base/guard/other_guards.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "src/base/error.hpp"
#include "src/base/interfaces.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::size_t longest_line = 64 << 20, longest_secret = 64, most_strangers = 64;
constexpr double secret_seconds = 5;  // a new connection must send the secret within this time

Descriptor internet_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (made) setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return made;
}

// Connects within a second or gives up, because an address might belong to a network that reaches no other host.
bool connects(int line, const std::string& address, int port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) return false;
  fcntl(line, F_SETFL, O_NONBLOCK);
  if (connect(line, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) return true;
  pollfd one{line, POLLOUT, 0};
  int why = 0;
  socklen_t length = sizeof why;
  return errno == EINPROGRESS && poll(&one, 1, 1000) == 1 && getsockopt(line, SOL_SOCKET, SO_ERROR, &why, &length) == 0 &&
         why == 0;
}

}  // namespace

std::string OtherGuards::invite(Invited who) {
  std::uint64_t secret[2] = {};
  sockaddr_in where{};
  where.sin_family = AF_INET;
  socklen_t length = sizeof where;
  if (who == Invited::this_host) where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listening_ = internet_socket();
  if (getrandom(secret, sizeof secret, 0) != sizeof secret || !listening_ ||
      bind(listening_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      listen(listening_.get(), 4096) != 0 ||
      getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&where), &length) != 0)
    return "";
  fcntl(listening_.get(), F_SETFL, O_NONBLOCK);
  secret_ = fmt::format("{:016x}{:016x}", secret[0], secret[1]);
  std::vector<std::string> addresses;
  for (const Interface& each : network_interfaces())
    if (each.up && each.loopback == (who == Invited::this_host)) addresses.push_back(each.address);
  return fmt::format("{} {} {}", chorale::join(addresses, ","), ntohs(where.sin_port), secret_);
}

void OtherGuards::join(const std::string& invitation) {
  const std::vector<std::string> words = split(invitation, ' ');
  if (words.size() != 3) return;
  for (const std::string& address : split(words[0], ',')) {
    Descriptor line = internet_socket();
    if (!line || !connects(line.get(), address, std::atoi(words[1].c_str()))) continue;
    Guard& guard = guards_.emplace_back();
    guard.line = std::move(line);
    guard.words.host = "of rank 0";
    guard.trusted = true;
    guard.came = clock_.seconds();
    guard.out = words[2] + "\n";
    return;
  }
}

void OtherGuards::add_to(std::vector<pollfd>& files) const {
  std::size_t strangers = 0;
  for (const Guard& guard : guards_) {
    strangers += !guard.trusted;
    const short events = guard.out.empty() ? POLLIN : POLLIN | POLLOUT;
    if (!guard.ended) files.push_back({guard.line.get(), events, 0});
  }
  if (listening_ && strangers < most_strangers) files.push_back({listening_.get(), POLLIN, 0});
}

void OtherGuards::say(const GuardWords& words) {
  for (Guard& guard : guards_)
    if (guard.trusted && !guard.ended) say(guard, words);
}

void OtherGuards::close(const std::string& host) {
  std::erase_if(guards_, [&](const Guard& guard) { return guard.words.host == host; });
}

void OtherGuards::beat(const std::function<GuardWords()>& words) {
  constexpr double words_seconds = 0.5, longest_pause = 2;
  const double now = clock_.seconds();
  if (beat_at_ >= 0) wait(std::min(now - beat_at_, longest_pause));
  beat_at_ = now;
  if (said_at_ >= 0 && now - said_at_ < words_seconds) return;
  said_at_ = now;
  say(words());
}

void OtherGuards::wait(double seconds) {
  for (Guard& guard : guards_) guard.silent += seconds;
}

bool OtherGuards::has_said_all() const {
  return std::ranges::all_of(guards_, [](const Guard& guard) { return guard.ended || guard.out.empty(); });
}

void OtherGuards::take_in() {
  const auto strangers = std::ranges::count_if(guards_, [](const Guard& guard) { return !guard.trusted; });
  for (auto more = static_cast<std::ptrdiff_t>(most_strangers) - strangers; listening_ && more > 0; --more) {
    Descriptor line(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!line) return;
    Guard& guard = guards_.emplace_back();
    guard.line = std::move(line);
    guard.came = clock_.seconds();
  }
}

std::vector<OtherGuards::Message> OtherGuards::move() {
  std::vector<Message> messages;
  take_in();
  for (Guard& guard : guards_) {
    if (guard.ended) continue;
    if (!guard.out.empty()) {
      const ssize_t sent = send(guard.line.get(), guard.out.data(), guard.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) guard.out.erase(0, static_cast<std::size_t>(sent));
    }
    receive(guard, messages);
  }
  std::erase_if(guards_, [&](const Guard& guard) {
    return !guard.trusted && (guard.ended || clock_.seconds() - guard.came > secret_seconds);
  });
  return messages;
}

void OtherGuards::receive(Guard& guard, std::vector<Message>& messages) {
  char piece[1 << 16];
  for (;;) {
    const ssize_t got = recv(guard.line.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) guard.ended = true;
    if (got <= 0) break;
    guard.silent = 0;
    guard.in.append(piece, static_cast<std::size_t>(got));
    if (guard.in.size() > longest_line) break;
  }
  std::size_t first = 0;
  for (std::size_t end; (end = guard.in.find('\n', first)) != std::string::npos; first = end + 1)
    read(guard, guard.in.substr(first, end - first), messages);
  guard.in.erase(0, first);
  if (guard.in.size() > (guard.trusted ? longest_line : longest_secret)) guard.ended = true;
}

// Ignores lines that cannot be parsed.
void OtherGuards::read(Guard& guard, const std::string& line, std::vector<Message>& messages) {
  if (!guard.trusted) {
    (line == secret_ ? guard.trusted : guard.ended) = true;
    return;
  }
  try {
    GuardWords words = guard_words_in(line);
    guard.words.host = words.host;
    if (words.look) {
      guard.words.look = words.look;
      guard.words.judges = words.judges;
    }
    if (!words.ranks.empty()) guard.words.ranks = words.ranks;
    messages.push_back({&guard, std::move(words)});
  } catch (const Error&) {}
}

}  // namespace chorale
