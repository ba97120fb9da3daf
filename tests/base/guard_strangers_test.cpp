// In these tests, processes that do not belong to the run connect to a guard. The guard (the process that watches the ranks
// of a host) must not wait for these strangers, and must ignore their messages.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "src/base/abstract_socket.hpp"
#include "src/base/guard/local_ranks.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/text.hpp"
#include "tests/catch.hpp"

namespace chorale::test {
namespace {

struct Listening {
  AbstractAddress address{fmt::format("chorale-test-{}", getpid())};
  Descriptor socket_{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  Listening() {
    REQUIRE(bind(socket_.get(), address.get(), address.length()) == 0);
    REQUIRE(listen(socket_.get(), 8) == 0);
  }
  Descriptor connected() const {
    Descriptor line(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(connect(line.get(), address.get(), address.length()) == 0);
    return line;
  }
};

Descriptor page_file(off_t bytes, bool sealed) {
  Descriptor file(memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(file.get(), bytes) == 0);
  if (sealed) REQUIRE(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  return file;
}

void show(int line, int file) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  REQUIRE(sendmsg(line, &message, 0) == 1);
}

Descriptor call_at(int port) {
  Descriptor line(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(line.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
  return line;
}

void write_to(const Descriptor& line, const std::string& text) {
  REQUIRE(send(line.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

// Lets the guard read messages for a short time. Returns the hosts from which the guard accepted messages.
std::string believed(OtherGuards& guards) {
  SystemClock clock;
  std::string hosts;
  for (int i = 0; i < 20; ++i, clock.sleep(2e-3))
    for (const auto& [from, words] : guards.move()) hosts += words.host + ";";
  return hosts;
}

}  // namespace

TEST_CASE("a guard does not wait for a silent stranger, and refuses pages that could end it") {
  const Listening listening;
  SystemClock clock;
  LocalRanks ranks(Descriptor(dup(listening.socket_.get())), 1, clock);
  const Descriptor silent = listening.connected(), empty = listening.connected(), small = listening.connected(),
                   loose = listening.connected(), rank = listening.connected();
  CHECK(ranks.move(true).empty());
  show(empty.get(), -1);
  show(small.get(), page_file(16, true).get());
  show(loose.get(), page_file(sizeof(FlightPage), false).get());
  CHECK(ranks.move(true).empty());
  CHECK(ranks.seen().empty());
  show(rank.get(), page_file(sizeof(FlightPage), true).get());
  CHECK(ranks.move(true).empty());
  CHECK(ranks.seen().size() == 1);
  CHECK(ranks.look().here == 1);
}

TEST_CASE("a guard believes only who knows the secret, and drops those who say too much without it") {
  SystemClock clock;
  OtherGuards guards(clock);
  const std::vector<std::string> invitation = split(guards.invite() + " ", ' ');
  REQUIRE(invitation.size() >= 3);
  const int port = std::stoi(invitation[1]);
  const std::string secret = invitation[2], words = R"({"host": "n1"})";
  const Descriptor wrong = call_at(port), loud = call_at(port), right = call_at(port), garbled = call_at(port);
  write_to(wrong, "secret\n" + words + "\n");
  write_to(loud, std::string(10000, 'x'));
  write_to(garbled, secret + "\n{\n\n[]\n" + words + "\n");
  write_to(right, secret + "\n" + words.substr(0, 5));
  CHECK(believed(guards) == "n1;");
  write_to(right, words.substr(5) + "\n");
  CHECK(believed(guards) == "n1;");
  CHECK(guards.guards().size() == 2);
}

}  // namespace chorale::test
