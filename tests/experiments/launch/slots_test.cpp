// Checks which slots a launch uses after deaths, and how it reads hosts.
#include "experiments/launch/slots.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::launch {
namespace {

using Hosts = std::vector<std::pair<std::string, int>>;

TEST_CASE("hosts are read from a list and from a file") {
  CHECK(read_hosts("n0:2,n1") == Hosts{{"n0", 2}, {"n1", 1}});
  CHECK(read_hosts("n0:2,n0:1") == Hosts{{"n0", 3}});
  const test::TemporaryFolder folder;
  test::put_bytes(folder / "hosts", "# mine\nn0 slots=2\n\nn1:3  # fast\n  n2\n");
  CHECK(read_hosts((folder / "hosts").string()) == Hosts{{"n0", 2}, {"n1", 3}, {"n2", 1}});
  for (const char* wrong : {"", "n0:0", "n0:-1", "n0:x", ":2", "n0:2,,n1", "n0:99999999999", "a b:2"})
    CHECK_THROWS(read_hosts(wrong));
  test::put_bytes(folder / "empty", "# nobody\n");
  CHECK_THROWS(read_hosts((folder / "empty").string()));
  CHECK_THROWS(read_hosts("/nowhere/hosts"));  // a file that does not exist is no host
}

TEST_CASE("a slot whose rank died is in quarantine, for twice as long each time") {
  Slots slots({{"n0", 2}, {"n1", 2}}, 60);
  CHECK(slots.live(0) == 4);
  CHECK(std::isinf(slots.next_return(0)));
  slots.assign(4, 0);
  CHECK(slots.host_of(1) == "n0");
  CHECK(slots.host_of(2) == "n1");
  CHECK(slots.host_of(4).empty());
  slots.lose(1, 100);
  CHECK(slots.live(100) == 3);
  CHECK(slots.live(159) == 3);
  CHECK(slots.next_return(100) == 160);
  CHECK(slots.live(160) == 4);
  slots.assign(3, 100);  // ranks 0, 1 and 2 are now on the slots 0, 2 and 3
  CHECK(slots.hosts_of_ranks().hosts == Hosts{{"n0", 1}, {"n1", 2}});
  slots.assign(4, 200);
  slots.lose(1, 200);
  CHECK(slots.next_return(200) == 320);
  slots.lose(7, 200);  // no such rank: the guard can name a rank that no slot has
  CHECK(slots.live(200) == 3);
  CHECK_THROWS(slots.assign(4, 200));
}

TEST_CASE("a host that is gone takes all its slots along") {
  Slots slots({{"n0", 1}, {"n1", 2}, {"n2", 1}}, 5);
  slots.assign(4, 0);
  slots.lose_host("n1", 10);
  CHECK(slots.live(10) == 2);
  slots.assign(2, 10);
  CHECK(slots.hosts_of_ranks().hosts == Hosts{{"n0", 1}, {"n2", 1}});
  CHECK(slots.hosts_of_ranks().host_file() == "n0\nn2\n");
  CHECK(slots.live(15) == 4);
}

}  // namespace
TEST_CASE("a loss that is seen twice counts once") {
  Slots slots({{"n0", 1}, {"n1", 1}}, 60);
  slots.assign(2, 0);
  slots.lose_host("n1", 10);
  slots.lose_host("n1", 75, 10);  // told late, after the quarantine
  CHECK(slots.live(75) == 2);
  slots.lose(1, 80);
  slots.lose_host("n1", 82);
  CHECK(slots.next_return(82) == 82 + 120);
}

TEST_CASE("the slot of a dead rank does not come back before the host that was lost after it") {
  Slots slots({{"n0", 2}, {"n1", 2}}, 20);
  slots.assign(4, 0);
  slots.lose(3, 8);
  slots.lose_host("n1", 19);
  CHECK(slots.live(38) == 2);
  CHECK(slots.live(39) == 4);
}

TEST_CASE("a host that is held back has no live slots") {
  Slots slots({{"n0", 2}, {"n1", 2}}, 60);
  slots.hold_back({"n1"});
  CHECK(slots.live(0) == 2);
  CHECK(slots.live_hosts(0) == std::vector<std::string>{"n0"});
  CHECK(slots.returned_hosts(0) == std::vector<std::string>{"n0", "n1"});
  CHECK(slots.next_return(0) < 10);
  slots.hold_back({});
  CHECK(slots.live(0) == 4);
}

TEST_CASE("ranks fill one host after the other, or all hosts get one first") {
  Slots slots({{"n0", 2}, {"n1", 2}, {"n2", 1}}, 60);
  const auto hosts = [&](int ranks, bool spread) {
    slots.assign(ranks, 0, spread);
    std::string words;
    for (const auto& [host, count] : slots.hosts_of_ranks().hosts) words += host + ":" + std::to_string(count) + " ";
    return words;
  };
  CHECK(hosts(3, false) == "n0:2 n1:1 ");
  CHECK(hosts(3, true) == "n0:1 n1:1 n2:1 ");
  CHECK(hosts(4, true) == "n0:2 n1:1 n2:1 ");
  CHECK(hosts(2, true) == "n0:1 n1:1 ");
}

}  // namespace chorale::launch
