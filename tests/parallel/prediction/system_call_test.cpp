// Compares the simulated times of collectives with closed forms.
#include "parallel/prediction/system_call.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/schedule/side_by_side.hpp"
#include "parallel/mesh/call_price.hpp"
#include "parallel/prediction/stage_cost.hpp"
#include "parallel/prediction/system_step.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
using Catch::Matchers::WithinRel;

namespace {

System system_of(double latency, int accelerators) {
  System system = small_system();
  system.host = {.accelerators = accelerators, .link = 100, .latency = latency};
  system.network = {.adapters = static_cast<double>(accelerators), .adapter = 20, .latency = 3 * latency};
  return system;
}

struct Called {
  double executed = 0, closed = 0;
  std::int64_t sent = 0;
};

Called call(Collective what, const std::string& name, std::int64_t count, int ranks, const System& system) {
  std::vector<int> hosts = hosts_of(system, ranks);
  if (hosts.back() == 0) hosts.clear();
  const Problem problem = Problem::even(what, count, ranks, 0, false, hosts);
  const Algorithm& algorithm = *find_algorithm(what, name);
  const std::vector<Schedule> schedules = plan_all_ranks(algorithm, problem);
  const CallVolume volume = volume_of_call({.algorithm = &algorithm}, problem, switches_of(system, ranks), DType::f32, 0);
  return {seconds_of_call(schedules, hosts, 4, system), time_of_call({.volume = volume}, system, 1).total(), volume.sent};
}

}  // namespace

TEST_CASE("a ring takes its closed form, in virtual time, on a host, and without latency between hosts") {
  for (const double latency : {0.0, 0.25})
    for (const int ranks : {2, 4, 8}) {
      if (latency > 0 && ranks > 4) continue;
      const Called ring = call(Collective::all_reduce, "ring", 960, ranks, system_of(latency, 4));
      INFO(ranks << " ranks, latency " << latency);
      CHECK_THAT(ring.executed, WithinRel(ring.closed, 1e-9));
      CHECK_THAT(call(Collective::all_gather, "ring", 960, ranks, system_of(latency, 4)).executed,
                 WithinRel(ring.closed / 2, 1e-9));
    }
}

TEST_CASE("between hosts, a ring takes its closed form, in which each message has the latency of its link") {
  System system = system_of(0.25, 4);
  system.network.adapter = system.host.link;  // then all messages have the same speed
  for (const int ranks : {5, 6, 8, 9, 12, 16, 31}) {
    const std::int64_t count = 48 * ranks;
    for (const Collective what : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      const Called ring = call(what, "ring", count, ranks, system);
      INFO(name_of(what) << " of " << ranks << " ranks");
      CHECK_THAT(ring.executed, WithinRel(ring.closed, 1e-9));
    }
  }
  system.host.accelerators = 1;  // every message crosses hosts
  system.network.adapters = 1;
  system.network.adapter = system.host.link;
  CHECK_THAT(call(Collective::all_reduce, "ring", 960, 4, system).executed,
             WithinRel(6 * 0.75 + 6.0 / 4 * 960 * 4 / 100, 1e-9));
}

TEST_CASE("a ring of 16 ranks on two hosts crosses hosts with 4 of its 30 messages") {
  const Problem problem = Problem::even(Collective::all_reduce, 160, 16, 0, false, hosts_of(system_of(1, 8), 16));
  for (const int rank : {0, 5, 7, 8, 15}) {
    const CallVolume volume =
        volume_of_call({.algorithm = find_algorithm(problem.what, "ring")}, problem, {}, DType::f32, rank);
    CHECK(volume.messages == 30);
    CHECK(volume.messages_crossing == 4);
  }
  const CallVolume doubling =
      volume_of_call({.algorithm = find_algorithm(problem.what, "recursive_doubling")}, problem, {}, DType::f32, 3);
  CHECK(doubling.messages == 4);
  CHECK(doubling.messages_crossing == 1);
}

TEST_CASE("messages of two speeds: a ring takes little more than its closed form") {
  const Called three = call(Collective::all_reduce, "ring", 960, 12, system_of(0, 4));
  CHECK_THAT(three.executed, WithinRel(three.closed, 0.02));
}

TEST_CASE("a ring of n ranks takes 2(n-1) latencies, and 2(n-1)/n of the vector over a link") {
  const Called ring = call(Collective::all_reduce, "ring", 960, 6, system_of(0.5, 6));
  CHECK_THAT(ring.executed, WithinRel(10 * 0.5 + 10.0 / 6 * 960 * 4 / 100, 1e-9));
}

TEST_CASE("messages that leave a rank together share its link") {
  // With the algorithm `direct`, the root sends to 3 ranks concurrently. In a tree, the root sends to 2 ranks concurrently,
  // and one of these ranks then forwards the message.
  const System system = system_of(0, 4);
  CHECK_THAT(call(Collective::broadcast, "direct", 1000, 4, system).executed, WithinRel(3 * 4000.0 / 100, 1e-9));
  CHECK_THAT(call(Collective::broadcast, "binomial_tree", 1000, 4, system).executed,
             WithinRel((2 + 1) * 4000.0 / 100, 1e-9));
}

TEST_CASE("all ranks of a host share its adapters") {
  // Each of 4 ranks sends an eighth of its input to each of 4 ranks of the other host, over 4 adapters of 20 B/s.
  const System system = system_of(0, 4);
  const Called direct = call(Collective::all_to_all, "direct", 800, 8, system);
  CHECK_THAT(direct.executed, WithinRel(4 * 4 * 400.0 / 80, 1e-9));
}

// Each host has one rank and one adapter of 20 B/s.
System switched_system(int switch_hosts, double oversubscription) {
  System system = system_of(0, 1);
  system.network.switch_hosts = switch_hosts;
  system.network.oversubscription = oversubscription;
  return system;
}

TEST_CASE("the bytes of an all_to_all between two leaf switches share an uplink") {
  // Each of 4 ranks under a switch sends an eighth of its input to each of 4 ranks under the other switch.
  for (const double oversubscription : {2.0, 4.0, 8.0}) {
    const Called direct = call(Collective::all_to_all, "direct", 800, 8, switched_system(4, oversubscription));
    INFO(oversubscription << " : 1");
    CHECK_THAT(direct.executed, WithinRel(4 * 4 * 400.0 / (4 * 20 / oversubscription), 1e-9));
    CHECK_THAT(direct.closed, WithinRel(direct.executed, 1e-9));
  }
  // Without oversubscription, the adapters limit the call: each rank sends to 7 others.
  const double adapters = 7 * 400.0 / 20;
  CHECK_THAT(call(Collective::all_to_all, "direct", 800, 8, switched_system(4, 1)).executed, WithinRel(adapters, 1e-9));
  CHECK_THAT(call(Collective::all_to_all, "direct", 800, 8, switched_system(8, 8)).executed, WithinRel(adapters, 1e-9));
}

TEST_CASE("a ring leaves each leaf switch once, so only a slower uplink than an adapter slows it down") {
  const double bytes = 2 * 7.0 / 8 * 960 * 4;
  for (const double oversubscription : {1.0, 4.0, 8.0, 16.0}) {
    const Called ring = call(Collective::all_reduce, "ring", 960, 8, switched_system(4, oversubscription));
    INFO(oversubscription << " : 1");
    CHECK_THAT(ring.closed, WithinRel(bytes / std::min(20.0, 4 * 20 / oversubscription), 1e-9));
    CHECK_THAT(ring.executed, WithinRel(ring.closed, 0.02));  // messages have two different speeds
  }
}

TEST_CASE("groups that call at the same time share the adapters of their hosts, but not the links of their accelerators") {
  const System system = system_of(0.25, 4);
  const std::vector<int> hosts = hosts_of(system, 8);
  const auto seconds = [&](const std::vector<std::vector<int>>& groups) {
    const auto size = static_cast<int>(groups[0].size());
    const Problem problem = Problem::even(Collective::all_reduce, 960, size, 0, false, hosts_among(groups[0], hosts));
    const auto schedules = plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"), problem);
    return seconds_of_call(side_by_side(schedules, {groups, hosts}), hosts, 4, system);
  };
  const double one_host = call(Collective::all_reduce, "ring", 960, 4, system).executed;
  CHECK(seconds({{0, 1, 2, 3}, {4, 5, 6, 7}}) == one_host);
  // A ring of two ranks sends the vector once in each direction. Four such rings share 4 adapters of 20 B/s on each host.
  CHECK_THAT(seconds({{0, 4}, {1, 5}, {2, 6}, {3, 7}}), WithinRel(2 * 0.75 + 3840.0 / 20, 1e-9));
  const System narrow = [&] {
    System one = system;
    one.network.adapters = 1;
    return one;
  }();
  const auto pair = plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"),
                                   Problem::even(Collective::all_reduce, 960, 2, 0, false, {0, 1}));
  const SideBySide all{{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, hosts};
  CHECK_THAT(seconds_of_call(side_by_side(pair, all), hosts, 4, narrow), WithinRel(2 * 0.75 + 4 * 3840.0 / 20, 1e-9));
}

TEST_CASE("a collective of one rank, or without elements, takes no time") {
  CHECK(call(Collective::all_reduce, "ring", 0, 4, system_of(0.5, 4)).executed == 0);
  CHECK(call(Collective::all_reduce, "ring", 100, 1, system_of(0.5, 4)).executed == 0);
}

}  // namespace chorale::test
