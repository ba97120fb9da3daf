// Measures a row beside matrix products, on threads and on processes.
#include "experiments/bench/beside.hpp"

#include <cmath>

#include "tests/experiments/bench/bench_on_threads.hpp"

using namespace chorale;
using bench::BesideTimes;

namespace {

bench::Series measured(bench::BenchTeam& team, Communicator& world, const std::string& algorithm) {
  bench::Bench bench(team, world, {.repetitions = 4, .warm_up = 1, .ceiling = false, .beside_products = true});
  bench.measure({.backend = world.backend(), .algorithm = algorithm, .ranks = world.size(), .count = 1 << 14});
  return bench.measure({.backend = world.backend(), .algorithm = algorithm, .ranks = world.size(), .count = 1 << 14});
}

// The order of the medians follows from their definitions, whatever the load of the machine.
bool is_consistent(const BesideTimes& times) {
  return times.products >= 1 && times.alone > 0 && times.call > 0 && times.slowed > 0 && times.both >= times.call &&
         times.both >= times.slowed;
}

}  // namespace

TEST_CASE("a call is hidden by as much as both together take less than one after the other") {
  CHECK(bench::hidden_share(2, 3, 3) == 1);
  CHECK(bench::hidden_share(3, 2, 3) == 1);
  CHECK(bench::hidden_share(2, 3, 5) == 0);
  CHECK(bench::hidden_share(2, 4, 5) == 0.5);
  CHECK(bench::hidden_share(2, 4, 7) == -0.5);
  CHECK(std::isnan(bench::hidden_share(2, NAN, NAN)));
}

TEST_CASE("threads multiply beside a call, and its result is checked", "[threads]") {
  const bench::Series series =
      test::bench_on_threads(3, [](bench::BenchTeam& team, Communicator& world) { return measured(team, world, "ring"); });
  CHECK(series.wrong == 0);
  CHECK(series.slowest.size() == 4);
  CHECK(is_consistent(series.beside));
}

TEST_CASE("processes multiply beside a call, also of the library's own algorithm, which is polled too", "[spmd]") {
  const mpi::Runtime& runtime = test::world();
  SystemClock clock;
  for (const char* backend : {"shm", "mpi"}) {
    Communicator world = open_world(backend, runtime, clock);
    bench::ProcessTeam team(runtime);
    for (const char* algorithm : {"ring", "native"}) {
      if (backend == std::string("shm") && algorithm == std::string("native")) continue;
      const bench::Series series = measured(team, world, algorithm);
      REQUIRE_ALL((runtime.rank() != 0 || (series.wrong == 0 && is_consistent(series.beside))));
    }
  }
}

TEST_CASE("a row beside products that is told to stop is empty") {
  VirtualClock clock;
  ThreadWorld threads(1);
  bench::Crew crew(1, clock);
  bench::ThreadTeam team(crew, 0);
  Communicator world = open_world(threads.transport(0), clock);
  std::int64_t looks = 0;
  const auto stops_at = [&](std::int64_t look) {
    looks = 0;
    bench::Bench bench(team, world, {.repetitions = 2, .ceiling = false, .beside_products = true, .told_to_stop = [&, look] {
                                       return ++looks == look;
                                     }});
    const bool empty = bench.measure({.backend = "threads", .count = 2}).slowest.empty();
    CHECK(empty == bench.stopped());
    return bench.stopped();
  };
  CHECK_FALSE(stops_at(99));
  const std::int64_t all = looks;
  CHECK(stops_at(all));  // the last look is beside products
}
