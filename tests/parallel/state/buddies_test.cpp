// Checks the choice of buddies: on another host, where most copies are, and with equal shares of the bytes.
#include "parallel/state/buddies.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

namespace chorale::test {
namespace {

HeldPart saved(const std::string& name, std::int64_t bytes = 8) { return {name, bytes, true}; }
HeldPart copied(const std::string& name, std::int64_t bytes = 8) { return {name, bytes, false}; }

}  // namespace

TEST_CASE("without another host there is no buddy") {
  CHECK(buddies_of({0}, {{saved("a")}}) == std::vector{-1});
  CHECK(buddies_of({3, 3}, {{saved("a")}, {saved("b")}}) == std::vector{-1, -1});
}

TEST_CASE("the buddy is on the next host, and the ranks there share the bytes") {
  CHECK(buddies_of({0, 1, 2}, {{saved("a")}, {saved("b")}, {saved("c")}}) == std::vector{1, 2, 0});
  CHECK(buddies_of({0, 0, 1, 1}, {{saved("a")}, {saved("b")}, {saved("c")}, {saved("d")}}) == std::vector{2, 3, 0, 1});
  CHECK(buddies_of({0, 0, 0, 1, 1}, {{saved("a", 9)}, {saved("b", 1)}, {saved("c", 1)}, {}, {}}) ==
        std::vector{3, 4, 4, 0, 0});
}

TEST_CASE("the rank that holds most of a rank's bytes is its buddy") {
  // dp2 across hosts: each rank has a copy of the other's weights.
  CHECK(buddies_of({0, 1, 2}, {{saved("w"), saved("m0")}, {saved("m1")}, {copied("w"), saved("m2")}}) ==
        std::vector{2, 2, 0});
  // A copy on the same host is of no use.
  CHECK(buddies_of({0, 0, 1}, {{saved("w")}, {copied("w")}, {saved("x")}}) == std::vector{2, 2, 0});
  // More bytes count, not more parts.
  CHECK(buddies_of({0, 1, 2},
                   {{saved("a", 1), saved("b", 1), saved("c", 9)}, {copied("a", 1), copied("b", 1)}, {copied("c", 9)}})[0] ==
        2);
}

TEST_CASE("nobody is buddy of a rank of its own host, on any layout") {
  std::mt19937 chance(1);
  for (int round = 0; round < 300; ++round) {
    const int ranks = std::uniform_int_distribution<int>(2, 12)(chance);
    std::vector<int> hosts;
    std::vector<std::vector<HeldPart>> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.push_back(static_cast<int>(chance() % 4));
      parts.push_back({saved("own" + std::to_string(rank), chance() % 100), copied("own" + std::to_string(chance() % 12))});
    }
    const bool alone = std::ranges::count(hosts, hosts[0]) == ranks;
    const std::vector<int> buddies = buddies_of(hosts, parts);
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      REQUIRE((buddies[rank] < 0) == alone);
      if (!alone) REQUIRE(hosts[static_cast<std::size_t>(buddies[rank])] != hosts[rank]);
    }
  }
}

TEST_CASE("parts go through text unchanged") {
  const auto back = held_parts_in(text_of({saved("a b[0]", 7), copied("c", 0)}));
  REQUIRE(back.size() == 2);
  CHECK((back[0].name == "a b[0]" && back[0].bytes == 7 && back[0].saved));
  CHECK((back[1].name == "c" && back[1].bytes == 0 && !back[1].saved));
  CHECK(held_parts_in(text_of(std::vector<HeldPart>())).empty());
}

}  // namespace chorale::test
