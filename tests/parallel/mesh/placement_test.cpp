#include "parallel/mesh/placement.hpp"

#include "parallel/mesh/mesh.hpp"
#include "tests/refused.hpp"

using namespace chorale;

namespace {

// Hosts with `ranks_of_each` ranks each. Ranks are placed host by host. (by_node() places ranks round robin.)
Topology by_slot(int hosts, int ranks_of_each) {
  Topology topology;
  for (int host = 0; host < hosts; ++host) topology.names.push_back("n" + std::to_string(host));
  for (int rank = 0; rank < hosts * ranks_of_each; ++rank) topology.host_of.push_back(rank / ranks_of_each);
  return topology;
}
Topology by_node(int hosts, int ranks_of_each) {
  Topology topology = by_slot(hosts, ranks_of_each);
  for (int rank = 0; rank < hosts * ranks_of_each; ++rank) topology.host_of[static_cast<std::size_t>(rank)] = rank % hosts;
  return topology;
}

std::string error_of(const std::string& word, const ByAxis& backends, const Topology& topology) {
  return test::refused([&] { require_reach(parse_layout(word, std::ssize(topology.host_of)), backends, topology); });
}

}  // namespace

TEST_CASE("groups_of() covers every axis of the mesh, and lists the ranks of each group") {
  for (const char* word : {"dp2.tp2.pp2", "dp3.tp2.sp", "pp4.v2", "dp4"}) {
    const Layout layout = parse_layout(word, 0);
    std::int64_t found = 0, expected = 0;
    for (const RankGroup& group : groups_of(layout)) found += static_cast<std::int64_t>(group.ranks.size());
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const Mesh mesh = Mesh::pretended(layout, rank, {}, {}, nullptr);
      for (const auto& axis : mesh.axes()) expected += axis->size() > 1;
    }
    CHECK(found == expected);
  }
  const auto groups = groups_of(parse_layout("dp2.tp2", 0));
  const auto has = [&](const std::string& name, const std::vector<int>& ranks) {
    return std::ranges::any_of(groups, [&](const RankGroup& g) { return g.name == name && g.ranks == ranks; });
  };
  CHECK((has("tp", {0, 1}) && has("tp", {2, 3}) && has("dp", {0, 2}) && has("dp", {1, 3}) && has("world", {0, 1, 2, 3})));
}

TEST_CASE("stays_on_hosts() distinguishes axes within hosts from axes that cross hosts") {
  const Layout layout = parse_layout("dp2.tp2.pp2", 0);
  CHECK(stays_on_hosts(layout, "tp", by_slot(2, 4)));
  CHECK(stays_on_hosts(layout, "dp", by_slot(2, 4)));
  CHECK_FALSE(stays_on_hosts(layout, "pp", by_slot(2, 4)));
  CHECK_FALSE(stays_on_hosts(layout, "dp", by_slot(4, 2)));
  CHECK_FALSE(stays_on_hosts(layout, "tp", by_node(2, 4)));
  CHECK_FALSE(stays_on_hosts(layout, "world", by_slot(2, 4)));
  CHECK(stays_on_hosts(parse_layout("dp8", 0), "tp", by_node(2, 4)));
  CHECK(stays_on_hosts(layout, "world", by_slot(1, 8)));
}

TEST_CASE("auto is the nearest backend for axes within hosts, and the widest for all others") {
  const auto chosen = [](const char* word, const ByAxis& asked, const Topology& topology) {
    return to_string(chosen_backends(asked, parse_layout(word, 0), topology, "shm", "ucx"));
  };
  CHECK(chosen("dp2.tp2", {{"", "auto"}}, by_slot(2, 2)) == "ucx,tp=shm");
  CHECK(chosen("dp2.tp2", {{"", "auto"}}, by_node(2, 2)) == "ucx,dp=shm");
  CHECK(chosen("dp4", {{"", "auto"}}, by_slot(2, 2)) == "ucx");
  CHECK(chosen("dp2.tp2", {{"", "auto"}, {"tp", "mpi"}}, by_slot(2, 2)) == "ucx,tp=mpi");
  CHECK(chosen("dp2.tp2", {{"", "mpi"}}, by_slot(2, 2)) == "mpi");
}

TEST_CASE("an axis that crosses hosts needs a backend that connects hosts, and the error says what would work") {
  const ByAxis mixed{{"", "mpi"}, {"tp", "shm"}};
  CHECK(error_of("dp2.tp2", mixed, by_slot(2, 2)) == "accepted");
  CHECK(error_of("dp4", mixed, by_node(2, 2)) == "accepted");
  CHECK(error_of("dp2.tp2", {{"", "shm"}}, by_node(1, 4)) == "accepted");

  const std::string order = error_of("dp2.tp2", mixed, by_node(2, 2));
  CHECK(order.find("shm connects the ranks of one host, and tp crosses hosts") != std::string::npos);
  CHECK(order.find("ranks 0-1 in one group; hosts have n0: 0,2, n1: 1,3") != std::string::npos);
  CHECK(order.find("mpirun --map-by slot") != std::string::npos);

  const std::string size = error_of("tp4", mixed, by_slot(2, 2));
  CHECK(size.find("--layout dp2.tp2 or use --backend tp=") != std::string::npos);
  CHECK(size.find("--map-by") == std::string::npos);

  const std::string both = error_of("tp4.sp", mixed, by_node(4, 1));
  CHECK(both.find("--layout dp4 or use") != std::string::npos);  // sequence parallelism needs tensor ranks
  CHECK(error_of("dp4.tp2", {{"", "mpi"}, {"dp", "shm"}}, by_slot(4, 2)).find("--backend dp=") != std::string::npos);
}

TEST_CASE("the refusal of a backend out of reach names an order of axes that would work") {
  const ByAxis mixed{{"", "mpi"}, {"dp", "shm"}};
  const std::string order = error_of("dp2.tp2", mixed, by_slot(2, 2));
  CHECK_THAT(order, says("dp crosses hosts") && says("take --order tp,dp or use --backend dp="));
  CHECK(error_of("dp2.tp2.tp-dp", mixed, by_slot(2, 2)) == "accepted");

  const ByAxis near{{"", "mpi"}, {"tp", "shm"}};
  CHECK_THAT(error_of("dp2.tp2.pp2", near, by_node(4, 2)), says("--map-by slot), take --order tp,pp,dp or use"));
  CHECK_THAT(error_of("dp2.tp2.pp2.tp-pp", near, by_slot(4, 2)), says("take --order pp,dp,tp or use"));
  const Topology mixed_up{{0, 0, 1, 0, 1, 1}, {"n0", "n1"}};
  CHECK_THAT(error_of("dp2.tp3.tp-dp", near, mixed_up), says("take --order dp,tp with mpirun --map-by slot or use"));
}
