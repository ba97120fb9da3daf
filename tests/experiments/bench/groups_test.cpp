// Tests how ranks are divided into groups, and measures a row with several groups on threads and on processes.
#include "experiments/bench/groups.hpp"

#include "tests/experiments/bench/bench_on_threads.hpp"

using namespace chorale;
using bench::Groups;
using Members = std::vector<std::vector<int>>;

namespace {

// Measures one row with these groups.
bench::Series measured(bench::BenchTeam& team, Communicator& world, const Groups& groups, Collective what, bool cold) {
  Communicator part = world.split(groups.of(world.rank(), world.size()), world.rank());
  bench::Bench bench(team, part, {.repetitions = 5, .warm_up = 1, .cold = cold, .groups = groups});
  return bench.measure({.backend = world.backend(),
                        .what = what,
                        .ranks = part.size(),
                        .all = groups.among(world.size(), world.hosts()),
                        .count = 24});
}

}  // namespace

TEST_CASE("groups are of consecutive ranks, or of every N-th rank") {
  CHECK(Groups{2}.among(6, {}).groups == Members{{0, 1, 2}, {3, 4, 5}});
  CHECK(Groups{2, true}.among(6, {}).groups == Members{{0, 2, 4}, {1, 3, 5}});
  CHECK(Groups{1}.among(3, {}).groups == Members{{0, 1, 2}});
  CHECK(Groups{3}.among(3, {}).groups == Members{{0}, {1}, {2}});
}

TEST_CASE("groups of unequal size, or on hosts in different ways, are refused") {
  CHECK_NOTHROW(Groups{2}.require_equal(4, {}));
  CHECK_THROWS_WITH(Groups{3}.require_equal(4, {}), says("equal groups") && says("--groups 3: 4 ranks") &&
                                                        says("take a divisor of 4, or start a multiple of 3 ranks"));
  CHECK_NOTHROW(Groups{2}.require_equal(4, {0, 0, 1, 1}));
  CHECK_NOTHROW(Groups{2, true}.require_equal(4, {0, 0, 1, 1}));
  const std::vector<int> hosts{0, 0, 0, 1};
  CHECK_THROWS_WITH(Groups{2}.require_equal(4, hosts),
                    says("ranks 0,1 are on 1 host; ranks 2,3 are on 2 hosts") && says("or add --strided"));
  CHECK_THROWS_WITH((Groups{2, true}.require_equal(4, hosts)), says("or leave out --strided"));
}

TEST_CASE("several groups of threads call at the same time, and each result is checked", "[threads]") {
  for (const bool strided : {false, true})
    for (const Collective what : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all}) {
      const bench::Series series = test::bench_on_threads(4, [&](bench::BenchTeam& team, Communicator& world) {
        return measured(team, world, {2, strided}, what, strided);
      });
      CHECK(series.wrong == 0);
      CHECK((series.times.size() == 4 && series.slowest.size() == 5));
      CHECK(series.ceiling > 0);
      // Each of the four ranks sends as much as in a call of two ranks.
      const double sent = what == Collective::all_reduce ? 24 : 12;
      CHECK(series.bytes_sent == 4 * sent * 4);
    }
}

TEST_CASE("several groups of processes call at the same time, and each result is checked", "[spmd]") {
  const mpi::Runtime& runtime = test::world();
  if (runtime.size() % 2 != 0) return;
  SystemClock clock;
  for (const char* backend : {"shm", "mpi"}) {
    Communicator world = open_world(backend, runtime, clock);
    for (const bool strided : {false, true}) {
      bench::ProcessTeam team(runtime);
      const bench::Series series = measured(team, world, {runtime.size() / 2, strided}, Collective::all_reduce, false);
      REQUIRE_ALL((runtime.rank() != 0 || series.wrong == 0));
      REQUIRE_ALL((runtime.rank() != 0 || series.times.size() == static_cast<std::size_t>(runtime.size())));
    }
  }
}

// If all groups had the same inputs, a group that received the data of another group would seem right.
TEST_CASE("the inputs of a benchmark differ between rounds, and thus between groups") {
  bench::Values one{.what = Collective::all_reduce, .ranks = 2, .round = 2}, other = one;
  other.round = 3;
  std::vector<float> data(64);
  const Slice slice{data.data(), 64, DType::f32};
  one.fill(0, slice, 0);
  const std::vector<float> first = data;
  other.fill(0, slice, 0);
  CHECK(data != first);
}
