// Tests the comparison of two records. Covers the conditions under which a record counts as slower, too few runs for a
// decision, and the messages.
#include "experiments/report/comparison.hpp"

#include <random>

#include "experiments/report/record_set.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::report;

namespace {

// Simulated latencies of `launches` launches. Each latency is about `slower` seconds and varies by a few percent.
Metric latency(const std::string& name, std::size_t launches, const std::string& session, double slower = 1) {
  Metric metric{name, Unit::seconds, false, true};
  for (std::size_t i = 0; i < launches; ++i)
    metric.launches[session + std::to_string(i)] = slower * (1 + 0.01 * static_cast<double>((i * 7 + session.size()) % 5));
  return metric;
}

MetricDifference only(const Comparison& comparison) {
  REQUIRE(comparison.differences.size() == 1);
  return comparison.differences[0];
}

}  // namespace

TEST_CASE("only a significant loss of speed beyond the threshold counts as slower") {
  const MetricDifference fell{.name = "step_time", .unit = Unit::seconds, .p = 1e-4, .loss = 0.2, .is_speed = true};
  CHECK(slower({fell}, 0.05).size() == 1);
  CHECK(slower({fell}, 0.25).empty());
  MetricDifference other = fell;
  other.is_speed = false;
  CHECK(slower({other}, 0.05).empty());
  other = fell;
  other.p = 0.2;
  CHECK(slower({other}, 0.05).empty());
  other = fell;
  other.p = std::nan("");
  CHECK(slower({other}, 0.05).empty());
  other = fell;
  other.loss = -0.2;
  CHECK(slower({other}, 0.05).empty());
}

TEST_CASE("a fall that the interval includes cannot be excluded, whichever way the estimate points") {
  MetricDifference wide{.name = "wide", .unit = Unit::seconds};
  wide.is_speed = true;
  wide.loss = -0.1;
  wide.worst = 0.8;
  wide.p = 0.4;
  CHECK(perhaps_slower({wide}, 0.05).size() == 1);
  CHECK(perhaps_slower({wide}, 0.9).empty());
  MetricDifference other = wide;
  other.loss = 0.3;
  other.p = 0.001;
  CHECK(perhaps_slower({other}, 0.05).empty());  // significantly slower, so not "perhaps"
  other = wide;
  other.is_speed = false;
  CHECK(perhaps_slower({other}, 0.05).empty());
  other = wide;
  other.worst = std::nan("");
  CHECK(perhaps_slower({other}, 0.05).empty());
  Metric noisy = latency("x", 6, "a"), noisier = noisy, speed = noisy, speed_later = noisy;
  for (const char* launch : {"a0", "a2", "a4"}) noisier.launches[launch] *= 2;
  for (const char* launch : {"a1", "a3", "a5"}) noisier.launches[launch] /= 2;
  speed_later.launches = noisier.launches;
  speed.more_is_better = speed_later.more_is_better = true;
  for (const auto& found : {compare({noisy}, {noisier}), compare({speed}, {speed_later})}) {
    CHECK(slower(found.differences, 0.05).empty());
    CHECK(perhaps_slower(found.differences, 0.05).size() == 1);
    CHECK(found.differences[0].worst > 0.5);
  }
}

TEST_CASE("six launches of each suffice, five do not, and unequal numbers are allowed") {
  for (const std::size_t launches : {1, 2, 5}) {
    const auto few = compare({latency("x", launches, "a")}, {latency("x", launches, "bb", 3)}).differences;
    CHECK(slower(few, 0.05).empty());
    CHECK_THAT(table_of(few, "csv").print("csv"), says("too few runs to tell"));
    CHECK_THAT(table_of(few, "csv").print("csv"), !says("~"));
    CHECK_THAT(legend_of(few), says("a comparison needs 6 launches of each"));
    CHECK_THAT(legend_of(few), !says("p:"));
  }
  const auto enough = compare({latency("x", 6, "a")}, {latency("x", 9, "bb", 1.2)}).differences;
  CHECK(slower(enough, 0.05).size() == 1);
  CHECK_THAT(table_of(enough, "text").print("text"), says("6 and 9"));
  CHECK_THAT(legend_of(enough), says("Welch's t-test"));
  CHECK_THAT(legend_of(enough), says("did not alternate"));
  const auto twins = compare({latency("x", 6, "a")}, {latency("x", 6, "a", 1.2)}).differences;
  CHECK(slower(twins, 0.05).size() == 1);
  CHECK_THAT(table_of(twins, "text").print("text"), says("6 pairs"));
  CHECK_THAT(legend_of(twins), says("paired t-test"));
  CHECK_THAT(legend_of(twins), !says("did not alternate"));
}

TEST_CASE("the legend says what the ratio is: a stalled launch moves the geometric mean, not the medians") {
  Metric one = latency("x", 6, "a"), other = latency("x", 6, "a");
  other.launches["a0"] *= 1e3;
  const auto stalled = compare({one}, {other}).differences;
  CHECK(stalled[0].other / stalled[0].one < 1.1);
  CHECK(stalled[0].contrast.ratio == Approx(std::pow(1e3, 1.0 / 6)));
  CHECK_THAT(legend_of(stalled),
             says("A, B: median of the launches; B / A: geometric mean of the ratios of paired launches\n"));
  const auto apart = compare({one}, {latency("x", 6, "bb")}).differences;
  CHECK_THAT(legend_of(apart), says("B / A: ratio of the geometric means of the launches\n"));
}

TEST_CASE("the advice for too few launches fits the kind of record") {
  const Metric training = latency("step_time", 1, "a");
  Metric bench = latency("x", 1, "a");
  bench.is_bench = true;
  const auto advice = [](const std::vector<Metric>& metrics) { return legend_of(compare(metrics, metrics).differences); };
  CHECK_THAT(advice({bench}), says("bench --launches 6") && !says("repetitions"));
  CHECK_THAT(advice({training}), says("compare SUITE.toml --repetitions 6") && !says("bench"));
  CHECK_THAT(advice({bench, training}), says("bench --launches 6") && says("--repetitions 6"));
}

TEST_CASE("common metrics are compared, and missing ones are named") {
  const Comparison found = compare({latency("x", 6, "a"), latency("gone", 6, "a")}, {latency("x", 6, "a")});
  CHECK(found.missing == std::vector<std::string>{"gone"});
  CHECK(only(found).contrast.ratio == 1);
  CHECK(only(found).p == 1);
  Metric speed = latency("x", 6, "a"), half = latency("x", 6, "a", 0.5);
  speed.more_is_better = half.more_is_better = true;
  CHECK(only(compare({speed}, {half})).loss == Approx(0.5));
  speed.more_is_better = half.more_is_better = false;
  CHECK(only(compare({speed}, {half})).loss == Approx(-0.5));
}

TEST_CASE("few comparisons of equal records with many cases raise an alarm") {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const auto record = [&](const std::string& session) {
    std::vector<Metric> metrics;
    for (int row = 0; row < 20; ++row) {
      metrics.push_back({"case " + std::to_string(row), Unit::seconds, false, true});
      for (int launch = 0; launch < 6; ++launch)
        metrics.back().launches[session + std::to_string(launch)] = std::exp(0.2 * normal(random));
    }
    return metrics;
  };
  int alarms = 0;
  for (int trial = 0; trial < 400; ++trial) alarms += !slower(compare(record("a"), record("b")).differences, 0.05).empty();
  CHECK(alarms <= 20);  // 400 / 20 differ by chance, and half of these are slower: 10, plus 3σ = 9.5
}

TEST_CASE("a tenth of the steps is warm-up, but never all of them") {
  const auto left = [](std::size_t steps) { return after_warm_up(std::vector<double>(steps, 1.0)).size(); };
  CHECK((left(2) == 1 && left(20) == 18 && left(21) == 18 && left(1000) == 990));
  CHECK(after_warm_up({9, 1, 2}) == std::vector<double>{1, 2});
  CHECK(after_warm_up({7}) == std::vector<double>{7});
  CHECK(after_warm_up({}).empty());
  CHECK(after_warm_up({9, 8, 1, 2}, 2) == std::vector<double>{1, 2});  // the user or the suite set the warm-up to 2 steps
  CHECK(after_warm_up({9, 1}, 0) == std::vector<double>{9, 1});
  CHECK(after_warm_up({9, 1}, 5) == std::vector<double>{9, 1});
}
