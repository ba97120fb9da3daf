// Checks the goodput of runs with faults against a table and against runs in virtual time, and the best interval against all
// intervals.
#include "parallel/plan/goodput.hpp"

#include <random>

#include "src/simulation/engine.hpp"
#include "tests/catch.hpp"

namespace chorale {
namespace {

// Runs steps in virtual time, with a snapshot after every `interval` steps and faults at random times. A fault loses the
// steps since the newest snapshot. Returns the share of the time that was spent on steps whose results last.
double simulated_goodput(const FaultTimes& times, std::int64_t interval, std::int64_t steps) {
  std::mt19937_64 random(50);
  std::exponential_distribution<double> until_fault(1 / times.between_faults);
  Engine engine;
  std::int64_t saved = 0, done = 0;
  int start = 0;  // the number of this start: ends of steps of earlier starts do not count
  const auto begin = [&](double at) {
    engine.at(at + times.step + ((done + 1) % interval == 0 ? times.snapshot : 0), start);
  };
  const auto start_again = [&](double at) {
    engine.at(engine.now() + until_fault(random), -1);
    begin(at);
  };
  double ended = 0;
  start_again(0);
  engine.run([&](int id) {
    if (saved >= steps) return;
    if (id == -1) {  // a fault
      done = saved;
      ++start;
      return start_again(engine.now() + times.restart);
    }
    if (id != start) return;
    if (++done % interval == 0) saved = done;
    if (saved >= steps) ended = engine.now();
    begin(engine.now());
  });
  return static_cast<double>(saved) * times.step / ended;
}

TEST_CASE("rare faults cost the shares of snapshots, lost steps and restarts") {
  const FaultTimes usual{.step = 1, .snapshot = 0.01, .restart = 4, .between_faults = 40000};
  const FaultTimes free{.step = 1, .snapshot = 0, .restart = 4, .between_faults = 40000};
  for (const FaultTimes& times : {usual, free})
    for (const std::int64_t interval : {1, 28, 200}) {
      const LostShares lost = lost_shares(times, interval);
      const auto steps = static_cast<double>(interval);
      INFO(times.snapshot << " s, every " << interval << " steps");
      CHECK(lost.snapshots == Approx(times.snapshot / (steps + times.snapshot)).epsilon(0.01));
      CHECK(lost.steps == Approx((steps + times.snapshot) / 2 / 40000).epsilon(0.02));
      CHECK(lost.restarts == Approx(1e-4).epsilon(1e-3));
      CHECK(goodput(times, interval) + lost.snapshots + lost.steps + lost.restarts == Approx(1).epsilon(1e-9));
    }
  CHECK(best_interval(usual) == Approx(28).margin(1));  // √(2 · 0.01 · 40000)
  CHECK(best_interval(free) == 1);
}

TEST_CASE("the best interval and the goodput in extreme cases") {
  const FaultTimes rare{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 1e12};
  CHECK(best_interval(rare) == Approx(1e6).epsilon(1e-3));
  const FaultTimes constant{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 2};
  CHECK(best_interval(constant) == 1);
  CHECK(goodput(constant, 1) == Approx(0.0606).epsilon(1e-3));
  CHECK(goodput(constant, 1'000'000) == 0);
  for (const std::int64_t interval : {std::int64_t{1}, std::int64_t{1'000'000}}) {
    const LostShares lost = lost_shares(constant, interval);  // a fault can interrupt a restart
    CHECK(lost.restarts == Approx(1 - std::exp(-2.0)));
    CHECK(goodput(constant, interval) + lost.snapshots + lost.steps + lost.restarts == Approx(1));
  }
  const FaultTimes never{.step = 1e-9, .snapshot = 1e3, .restart = 4, .between_faults = 1e12};
  CHECK(best_interval(never) == 1'000'000'000);
  CHECK(goodput(never, 1) == Approx(1e-12));
}

TEST_CASE("a run in virtual time with random faults has the goodput of the formula") {
  const FaultTimes usual{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 400};
  for (const std::int64_t interval : {1, 5, 20, 80, 400}) {
    INFO("every " << interval << " steps");
    CHECK(simulated_goodput(usual, interval, 400'000) == Approx(goodput(usual, interval)).epsilon(0.02));
  }
  const FaultTimes constant{.step = 1, .snapshot = 0.5, .restart = 4, .between_faults = 2};
  CHECK(simulated_goodput(constant, 1, 20'000) == Approx(goodput(constant, 1)).epsilon(0.03));
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
