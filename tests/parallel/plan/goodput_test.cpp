// Checks the goodput of runs with faults against a table, and the best interval against all intervals.
#include "parallel/plan/goodput.hpp"

#include "tests/catch.hpp"

namespace chorale {
namespace {

TEST_CASE("goodput is 1 without the shares of snapshots, lost steps and restarts") {
  struct Row {
    FaultTimes times;
    std::int64_t interval;
    double goodput;
    std::int64_t best;
  };
  const FaultTimes usual{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 400};
  const FaultTimes free{.step = 1, .snapshot = 0, .restart = 4, .between_faults = 400};
  const FaultTimes rare{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 1e12};
  const FaultTimes constant{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 2};
  const FaultTimes slow{.step = 100, .snapshot = 0.5, .restart = 4, .between_faults = 400};
  const FaultTimes never{.step = 1e-9, .snapshot = 1e3, .restart = 4, .between_faults = 1e12};
  for (const auto& [times, interval, expected, best] :
       {Row{usual, 1, 1 - 0.5 - 0.5 / 400 - 0.01, 20}, Row{usual, 20, 1 - 0.025 - 0.025 - 0.01, 20},
        Row{usual, 400, 1 - 0.5 / 400 - 0.5 - 0.01, 20}, Row{free, 1, 1 - 0.5 / 400 - 0.01, 1},
        Row{free, 100, 1 - 0.125 - 0.01, 1}, Row{rare, 1'000'000, 1 - 0.5e-6 - 0.5e-6 - 4e-12, 1'000'000},
        Row{constant, 1, 0, 1}, Row{constant, 1000, 0, 1}, Row{slow, 1, 1 - 0.005 - 0.125 - 0.01, 1},
        Row{never, 1, 0, 1'000'000'000}}) {
    INFO(times.step << " s, " << times.snapshot << " s, " << times.between_faults << " s, every " << interval << " steps");
    CHECK(goodput(times, interval) == Approx(expected).margin(1e-15));
    CHECK(best_interval(times) == best);
  }
  const LostShares lost = lost_shares(usual, 10);
  CHECK(lost.snapshots == Approx(0.05));
  CHECK(lost.steps == Approx(0.0125));
  CHECK(lost.restarts == Approx(0.01));
}

TEST_CASE("no interval has a higher goodput than the best one") {
  for (const double snapshot : {0.0, 0.01, 0.3, 2.0})
    for (const double between_faults : {5.0, 60.0, 777.0}) {
      const FaultTimes times{.step = 0.7, .snapshot = snapshot, .restart = 1, .between_faults = between_faults};
      const double best = goodput(times, best_interval(times));
      INFO(snapshot << " s, " << between_faults << " s");
      for (std::int64_t interval = 1; interval < 200; ++interval) CHECK(goodput(times, interval) <= best);
    }
}

}  // namespace
}  // namespace chorale
