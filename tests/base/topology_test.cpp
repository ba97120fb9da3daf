#include "src/base/topology.hpp"

#include "src/base/host.hpp"
#include "tests/refused.hpp"
#include "tests/spmd.hpp"

using namespace chorale;

TEST_CASE("a topology knows which ranks share a host") {
  const Topology topology{{0, 1, 0, 1, 2}, {"n0", "n1", "n2"}};
  CHECK(topology.hosts() == 3);
  CHECK(topology.together(std::vector{0, 2}));
  CHECK(topology.together(std::vector{4}));
  CHECK_FALSE(topology.together(std::vector{0, 2, 3}));
  CHECK(topology.text() == "n0: 0,2, n1: 1,3, n2: 4");
  CHECK(Topology::of_one_host(3).together(std::vector{0, 1, 2}));
}

TEST_CASE("a part of a topology numbers its hosts anew") {
  const Topology topology{{0, 1, 0, 1, 2}, {"n0", "n1", "n2"}};
  const Topology part = topology.part(std::vector{4, 1, 3});
  CHECK(part.host_of == std::vector{0, 1, 1});
  CHECK(part.names == std::vector<std::string>{"n2", "n1"});
  CHECK(topology.part({}).hosts() == 0);
}

TEST_CASE("hosts are read from the number of ranks on each") {
  const Topology topology = Topology::parse("2,3,1", 6);
  CHECK(topology.host_of == std::vector{0, 0, 1, 1, 1, 2});
  CHECK(topology.text() == "n0: 0-1, n1: 2-4, n2: 5");
  CHECK(Topology::parse("4", 0).hosts() == 1);
  for (const char* wrong : {"", "2,,1", "2,0", "-1", "2,x", "2,3x", "99999999999"})
    CHECK_THAT(test::refused([&] { Topology::parse(wrong, 0); }), says("hosts"));
  const std::string error = test::refused([] { Topology::parse("2,3", 4); });
  CHECK_THAT(error, says("--hosts 2,3: 5 ranks; there are 4") && says("whose sum is 4"));
}

TEST_CASE("ranks of one launch on one machine share a host", "[spmd]") {
  const Topology topology = topology_of(test::world());
  REQUIRE_ALL(topology.host_of == std::vector<int>(static_cast<std::size_t>(test::world().size()), 0));
  REQUIRE_ALL(topology.names == std::vector{host_name()});
}
