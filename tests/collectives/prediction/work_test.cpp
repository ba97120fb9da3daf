#include "collectives/prediction/work.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/prediction/caches.hpp"
#include "collectives/prediction/prediction.hpp"
#include "src/base/error.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using prediction::Access;
using prediction::Caches;
using prediction::Site;
using prediction::WorkGraph;

TEST_CASE("the work of a rank follows one after the other, that of several ranks at once, and latency delays it") {
  for (const double first : {3.0, 1.0}) {
    WorkGraph graph(Site::one_host(2, 2), 0);
    graph.add(0, first);
    const int second = graph.add(0, 2), far = graph.add(1, 4);
    CHECK(graph.seconds() == std::max(first + 2, 4.0));
    graph.after(second, far, 0.5);
    CHECK(graph.seconds() == first + 2 + 0.5 + 4);
    graph.after(far, second);
    CHECK_THROWS_WITH(graph.seconds(), says("2 of 3 steps wait forever"));
  }
}

TEST_CASE("ranks that outnumber the cores take turns, and each turn costs a switch") {
  for (const double turn : {0.0, 0.25}) {
    WorkGraph graph(Site::one_host(4, 2), turn);
    for (int rank = 0; rank < 4; ++rank) graph.add(rank, 1);
    CHECK(graph.seconds() == 2 + turn);
  }
  WorkGraph enough(Site::one_host(4, 4), 0.25);
  for (int rank = 0; rank < 4; ++rank) enough.add(rank, 1);
  CHECK(enough.seconds() == 1);
  CHECK((Site::one_host(4, 2).crowded() && !Site::one_host(4, 4).crowded()));
}

TEST_CASE("the ranks of a host share its link, and hosts on one machine share its cores") {
  Site site{.host_of = {0, 0, 1, 1}, .machine_of = {0, 0, 1, 1}, .cores = 2};
  const auto two_transfers = [&](int from, int to) {
    WorkGraph graph(site, 0);
    graph.add_transfer(0, 2, 1);
    graph.add_transfer(from, to, 1);
    return graph.seconds();
  };
  CHECK(two_transfers(1, 3) == 2);  // both transfers in the same direction
  CHECK(two_transfers(2, 0) == 1);  // the second transfer in the other direction
  const auto four_works = [&] {
    WorkGraph graph(site, 0);
    for (int rank = 0; rank < 4; ++rank) graph.add(rank, 1);
    return graph.seconds();
  };
  CHECK(four_works() == 1);
  site.machine_of = {0, 0, 0, 0};
  CHECK(four_works() == 2);
}

TEST_CASE("a link that was idle carries a burst at once, and catches up afterwards") {
  const Site site{.host_of = {0, 1}, .machine_of = {0, 1}, .cores = 1};
  WorkGraph graph(site, 0, 2);
  const int first = graph.add_transfer(0, 1, 1);
  CHECK(graph.seconds() == 0);
  graph.add_transfer(0, 1, 2);
  CHECK(graph.seconds() == 1);
  const int pause = graph.add(1, 3), second = graph.add_transfer(0, 1, 4);
  graph.after(first, pause);
  graph.after(pause, second);
  CHECK(graph.seconds() == 3 + 4 - 2);
}

TEST_CASE("the ranks of a machine are dealt to its cores, and no core belongs to two machines") {
  using Cores = std::vector<int>;
  CHECK(Site::one_host(5, 2).core_of() == Cores{0, 1, 0, 1, 0});
  CHECK(Site{.host_of = {0, 0, 1, 1}, .machine_of = {0, 0, 1, 1}, .cores = 2}.core_of() == Cores{0, 1, 2, 3});
  CHECK(Site{.host_of = {0, 1, 0, 1}, .machine_of = {0, 1, 0, 1}, .cores = 1}.core_of() == Cores{0, 1, 0, 1});
  CHECK(Site{.host_of = {0, 0, 1, 1}, .machine_of = {0, 0, 0, 0}, .cores = 2}.core_of() == Cores{0, 1, 0, 1});
}

TEST_CASE("a rank continues its call only between two pieces of the work beside it") {
  WorkGraph graph(Site::one_host(2, 2), 0);
  const int begin = graph.add(0, 1), send = graph.add(1, 2.5), receive = graph.add(0, 1), answer = graph.add(1, 10);
  graph.after(begin, receive);
  graph.after(send, receive);
  graph.after(receive, answer);
  CHECK(graph.seconds() == 2.5 + 1 + 10);
  graph.add(0, begin, {3, 2});  // rank 0 receives at 3, after the first piece, although the message is there at 2.5
  CHECK(graph.seconds() == 3 + 1 + 10);
  graph.add(1, send, {1, 4});  // rank 1 is busy with its piece until 6.5
  CHECK(graph.seconds() == 6.5 + 10);
}

TEST_CASE("work beside a call hides its latencies, but not its copies, which need the same cores") {
  const auto ranks = plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"),
                                    Problem::even(Collective::all_reduce, 1 << 10, 2, 0, false));
  prediction::Prices waits{.latency = 1}, copies;
  copies.touch.fill(1e-3);
  copies.cross.fill(1e-3);
  const Site site = Site::one_host(2, 2);
  for (const bool maps : {true, false}) {
    const auto seconds = [&](const prediction::Prices& prices, const prediction::WorkBeside& beside) {
      return maps ? prediction::mapped(ranks, 4, site, prices, beside)
                  : prediction::messages(ranks, 4, site, prices, prices, beside);
    };
    const double waiting = seconds(waits, {}), copying = seconds(copies, {});
    CHECK(seconds(waits, {1000, waiting / 1000}) < 1.01 * waiting);
    CHECK(seconds(copies, {1000, copying / 1000}) > 1.9 * copying);
    CHECK(seconds(waits, {1, waiting}) > 1.2 * waiting);  // one piece: the rank sees the first message only at its end
  }
}

TEST_CASE("machines have caches of their own: more cores than ranks on each do not change a call") {
  const auto ranks = plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"),
                                    Problem::even(Collective::all_reduce, 1 << 16, 4, 0, true));
  const prediction::Prices near{.touch = {1e-11, 2e-11, 4e-11, 8e-11, 9e-11}, .cross = {2e-11, 4e-11, 8e-11, 9e-11, 9e-11}};
  const prediction::Prices far = near;
  const auto seconds = [&](int cores) {
    return prediction::messages(ranks, 4, {{0, 0, 1, 1}, {0, 0, 1, 1}, cores}, near, far);
  };
  CHECK(seconds(2) == seconds(4));
  CHECK(seconds(2) > 0);
}

TEST_CASE("a core holds what it last wrote, and fetches what another core has written since") {
  const Algorithm* const ring = find_algorithm(Collective::all_reduce, "ring");
  const auto ranks = plan_all_ranks(*ring, Problem::even(Collective::all_reduce, 8, 2, 0, true));
  Caches caches(ranks, {0, 1});
  caches.note(0, 0, 0, input(0, 8), Access::store);  // rank 0 writes its vector; elements 2 and 3 were in rank 1's cache
  caches.note(1, 1, 0, input(2, 2), Access::load);   // rank 1 reads two elements of the vector
  caches.note(2, 0, 0, input(0, 8), Access::load);   // rank 0 still has the whole vector in its cache
  const auto counts = caches.counts(3);
  CHECK((counts[0].held == 6 && counts[0].fetched == 2));
  CHECK((counts[1].held == 0 && counts[1].fetched == 2));
  CHECK((counts[2].held == 8 && counts[2].fetched == 0));
  CHECK((caches.touched(0) == 8 && caches.touched(1) == 2));
  Caches one_core(ranks, {0, 0});
  one_core.note(0, 0, 0, input(0, 8), Access::store);
  one_core.note(1, 1, 0, input(2, 2), Access::load);
  CHECK(one_core.counts(2)[1].held == 2);
}

TEST_CASE("a store to what the same work has just loaded is free, and loads that are added count apart") {
  const Algorithm* const ring = find_algorithm(Collective::all_reduce, "ring");
  const auto ranks = plan_all_ranks(*ring, Problem::even(Collective::all_reduce, 8, 2, 0, true));
  Caches caches(ranks, {0, 1});
  caches.note(0, 0, 0, input(0, 8), Access::add);    // rank 0 adds to its own vector …
  caches.note(0, 0, 0, input(0, 4), Access::store);  // … and stores half of the sums in the same work item
  caches.note(1, 0, 0, input(4, 4), Access::store);  // a later work item stores the other half
  caches.note(2, 1, 1, input(0, 8), Access::store);
  caches.note(3, 0, 1, input(0, 8), Access::add);  // reads data that rank 1 has written
  const auto counts = caches.counts(4);
  CHECK((counts[0].held == 8 && counts[0].fetched == 0 && counts[1].held == 4));
  CHECK((counts[3].fetched == 8 && counts[3].added == 8 && counts[2].added == 0));
}
