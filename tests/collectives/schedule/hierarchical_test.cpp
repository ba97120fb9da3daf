// Hierarchical algorithms are proved correct for random placements of ranks on hosts. Between hosts, hierarchical algorithms
// must send the minimum number of bytes.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "collectives/analysis/checker.hpp"
#include "collectives/analysis/host_traffic.hpp"
#include "collectives/schedule/lanes.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/spmd.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

std::vector<Algorithm> hierarchical_ones() {
  std::vector<Algorithm> found;
  for (const Algorithm& row : all_algorithms())
    if (row.name == std::string("hierarchical")) found.push_back(row);
  return found;
}

// Places `size` ranks on hosts at random. Host numbers are not consecutive, and the number of ranks per host is arbitrary.
// In about half of the placements, the ranks of each host are consecutive.
std::vector<int> random_hosts(std::mt19937& random, int size) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const int hosts = 1 + below(size);
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(10 * below(hosts));
  if (below(2) == 0) std::ranges::sort(all);
  return all;
}

// The number of elements of the full vector that belong to the ranks of a host.
std::int64_t elements_of(const Problem& p, int host) {
  const Lanes lanes(p);
  std::int64_t elements = 0;
  for (const int rank : lanes.ranks(host)) elements += p.blocks.count(rank);
  return elements;
}

std::vector<HostTraffic> traffic_of(const Problem& p) {
  return host_traffic(plan_all_ranks(named(p.what, "hierarchical"), p));
}

}  // namespace

TEST_CASE("hierarchical algorithms are proved correct for random placements of ranks on hosts") {
  const std::vector<Algorithm> algorithms = hierarchical_ones();
  REQUIRE(algorithms.size() == 6);
  std::mt19937 random(19);
  for (int trial = 0; trial < (thorough() ? 2000 : 300); ++trial, alive()) {
    const int size = 1 + static_cast<int>(random() % 13), chunks = 1 + static_cast<int>(random() % 3) * 2;
    const std::vector<int> hosts = random_hosts(random, size);
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::int64_t>(random() % 5));
    for (const Algorithm& algorithm : algorithms) {
      const auto count = static_cast<std::int64_t>(random() % static_cast<unsigned>(6 * size));
      Problem problem = Problem::even(algorithm.what, count, size, static_cast<int>(random()) & 7, trial % 2 == 1, hosts);
      problem.root %= size;
      if (algorithm.what != Collective::all_to_all && trial % 3 == 0) problem.blocks = Blocks(counts);
      INFO(name_of(algorithm.what) << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", root " << problem.root
                                   << ", " << problem.blocks.total() << " elements in " << chunks << " chunks"
                                   << (problem.in_place ? ", in place" : ""));
      REQUIRE(find_flaw(cut_all(plan_all_ranks(algorithm, problem), chunks)) == "");
    }
  }
}

TEST_CASE("hierarchical algorithms are proved correct for the placements of users") {
  for (const std::vector<int>& hosts : {std::vector<int>{},
                                        {7},
                                        {0, 0, 0, 0},
                                        {0, 0, 1, 1},
                                        {0, 1, 0, 1},
                                        {0, 1, 2},
                                        {0, 0, 1, 1, 1, 2},
                                        {2, 0, 0, 2, 1, 0, 2},
                                        {0, 0, 0, 0, 1},
                                        {1, 0, 0, 0, 0}})
    for (const Algorithm& algorithm : hierarchical_ones())
      for (const bool in_place : {false, true})
        for (const int chunks : {1, 4})
          for (int root = 0; root < std::max<int>(1, static_cast<int>(hosts.size())); ++root) {
            const int size = std::max<int>(1, static_cast<int>(hosts.size()));
            const Problem problem = Problem::even(algorithm.what, 11 * size, size, root, in_place, hosts);
            INFO(name_of(algorithm.what) << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", root " << root);
            REQUIRE(find_flaw(cut_all(plan_all_ranks(algorithm, problem), chunks)) == "");
          }
}

TEST_CASE("hierarchical algorithms send as little between hosts as any algorithm can") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const int size = 2 + static_cast<int>(random() % 12), root = static_cast<int>(random() % 7) % size;
    const std::vector<int> placement = random_hosts(random, size);
    INFO("hosts " << fmt::format("{}", fmt::join(placement, ",")) << ", root " << root);
    const auto problem = [&](Collective what, std::int64_t count) {
      return Problem::even(what, count, size, root, trial % 2 == 0, placement);
    };
    const Lanes lanes(problem(Collective::barrier, 1));
    const int n = lanes.hosts();
    const auto alone = [&](std::int64_t elements) { return n == 1 ? 0 : elements; };  // a single host sends nothing

    // In a reduce_scatter, each host sends its partial sums of the blocks of all other hosts. In an all_gather, each host
    // receives the blocks of all other hosts.
    Problem uneven = problem(Collective::reduce_scatter, 0);
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < size; ++rank) counts.push_back(static_cast<std::int64_t>(random() % 9));
    uneven.blocks = Blocks(counts);
    const auto scattered = traffic_of(uneven);
    uneven.what = Collective::all_gather;
    const auto gathered = traffic_of(uneven);
    const std::int64_t even = 12 * lanes.count() * n;
    const auto reduced = traffic_of(problem(Collective::all_reduce, even));
    const auto cast = traffic_of(problem(Collective::broadcast, 101)),
               to_root = traffic_of(problem(Collective::reduce, 101));
    const auto exchanged = traffic_of(problem(Collective::all_to_all, 3 * size));
    for (int host = 0; host < n; ++host) {
      const auto h = static_cast<std::size_t>(host);
      CHECK(scattered[h].elements_sent == alone(uneven.blocks.total() - elements_of(uneven, host)));
      CHECK(gathered[h].elements_received == alone(uneven.blocks.total() - elements_of(uneven, host)));
      CHECK(reduced[h].elements_sent == 2 * (n - 1) * even / n);
      CHECK(reduced[h].elements_received == 2 * (n - 1) * even / n);
      const bool is_roots = host == lanes.host_of(root);
      CHECK(cast[h].elements_received == (is_roots ? 0 : 101));
      CHECK((is_roots ? cast[h].elements_sent == alone(101) : cast[h].elements_sent < 101));
      CHECK(to_root[h].elements_sent == (is_roots ? 0 : 101));
      CHECK((is_roots ? to_root[h].elements_received == alone(101) : to_root[h].elements_received < 101));

      const auto here = static_cast<std::int64_t>(lanes.ranks(host).size());
      CHECK(exchanged[h].elements_sent == 3 * here * (size - here));
      CHECK(exchanged[h].messages_sent == size - here);  // one message to each rank of another host
      CHECK(exchanged[h].messages_received == here * (n - 1));
    }
  }
}

TEST_CASE("the ranks of a host share its messages") {
  const Problem p = Problem::even(Collective::all_reduce, 720, 8, 0, false, {0, 0, 0, 0, 1, 1, 1, 1});
  for (const Schedule& rank : plan_all_ranks(named(p.what, "hierarchical"), p)) {
    std::int64_t sent = 0;
    for (const Step& step : rank.steps)
      for (const int peer : step.peers)
        if (step.kind == Kind::send && peer / 4 != rank.problem().rank / 4) sent += step.src[0].count;
    CHECK(sent == 720 / 4);
  }
}

TEST_CASE("owners of lanes: each lane has one owner on each host, and all ranks of a host own about as many") {
  Problem p = Problem::even(Collective::barrier, 1, 6, 0, false, {5, 5, 3, 3, 3, 9});
  const Lanes lanes(p);
  CHECK((lanes.hosts() == 3 && lanes.count() == 3 && lanes.host_of(5) == 2));
  const auto owners = [&](int host) {
    return std::vector{lanes.owner(host, 0), lanes.owner(host, 1), lanes.owner(host, 2)};
  };
  CHECK((owners(0) == std::vector{0, 1, 1} && owners(1) == std::vector{2, 3, 4} && owners(2) == std::vector{5, 5, 5}));
  CHECK(lanes.hosts_beyond(3) == std::vector{0, 2});
  p.hosts.pop_back();
  CHECK_THROWS_WITH(Lanes(p), says("a problem of 6 ranks has hosts for 5"));
}

TEST_CASE("the elements that cross hosts are the same counted by rank and by host") {
  std::mt19937 random(23);
  std::int64_t crossed = 0;
  for (const Algorithm& algorithm : all_algorithms())
    for (int trial = 0; trial < 20; ++trial) {
      const int size = 2 + static_cast<int>(random() % 7);
      const Problem problem = Problem::even(algorithm.what, 5 * size, size, 0, false, random_hosts(random, size));
      if (!fits(algorithm, problem)) continue;
      const std::vector<Schedule> ranks = plan_all_ranks(algorithm, problem);
      std::int64_t by_rank = 0, by_host = 0;
      for (const Schedule& schedule : ranks) by_rank += schedule.elements_crossing();
      for (const HostTraffic& host : host_traffic(ranks)) by_host += host.elements_sent;
      INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << size << " ranks");
      CHECK(by_rank == by_host);
      crossed += by_rank;
    }
  CHECK(crossed > 0);
}
