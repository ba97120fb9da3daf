// Two records held against each other: what counts as slower, what cannot be told, and what is said of it.
#include "experiments/report/comparison.hpp"

#include <random>

#include "experiments/report/record_set.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::report;

namespace {

// Of so many launches, `slower` times as long as a second, a hundredth to and fro.
Metric latency(const std::string& name, std::size_t launches, const std::string& session, double slower = 1) {
  Metric metric{name, Unit::seconds, false, true};
  for (std::size_t i = 0; i < launches; ++i)
    metric.launches[session + std::to_string(i)] = slower * (1 + 0.01 * static_cast<double>((i * 7 + session.size()) % 5));
  return metric;
}

Difference only(const Comparison& comparison) {
  REQUIRE(comparison.differences.size() == 1);
  return comparison.differences[0];
}

}  // namespace

TEST_CASE("slower is what is a speed, past the threshold, and significant") {
  const Difference fell{.name = "step_time", .unit = Unit::seconds, .p = 1e-4, .loss = 0.2, .is_speed = true};
  CHECK(slower({fell}, 0.05).size() == 1);
  CHECK(slower({fell}, 0.25).empty());
  Difference other = fell;
  other.is_speed = false;
  CHECK(slower({other}, 0.05).empty());
  other = fell, other.p = 0.2;
  CHECK(slower({other}, 0.05).empty());
  other = fell, other.p = std::nan("");
  CHECK(slower({other}, 0.05).empty());
  other = fell, other.loss = -0.2;
  CHECK(slower({other}, 0.05).empty());
}

TEST_CASE("six launches of each tell, five do not, and a launch more or less of one does no harm") {
  for (const std::size_t launches : {1, 2, 5}) {
    const auto few = compare({latency("x", launches, "a")}, {latency("x", launches, "bb", 3)}).differences;
    CHECK(slower(few, 0.05).empty());
    CHECK_THAT(table_of(few).print("csv"), says("too few runs to tell"));
    CHECK_THAT(table_of(few).print("csv"), !says("~"));
    CHECK_THAT(legend_of(few), says("a comparison needs 6 launches of each"));
    CHECK_THAT(legend_of(few), !says("p:"));
  }
  const auto enough = compare({latency("x", 6, "a")}, {latency("x", 9, "bb", 1.2)}).differences;
  CHECK(slower(enough, 0.05).size() == 1);
  CHECK_THAT(table_of(enough).print("csv"), says("6 and 9"));
  CHECK_THAT(legend_of(enough), says("Welch's t-test"));
  CHECK_THAT(legend_of(enough), says("did not alternate"));
  const auto twins = compare({latency("x", 6, "a")}, {latency("x", 6, "a", 1.2)}).differences;
  CHECK(slower(twins, 0.05).size() == 1);
  CHECK_THAT(table_of(twins).print("csv"), says("6 pairs"));
  CHECK_THAT(legend_of(twins), says("paired t-test"));
  CHECK_THAT(legend_of(twins), !says("did not alternate"));
}

TEST_CASE("what both records have is compared, and what one has lost is named") {
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

TEST_CASE("in a hundred comparisons of equal records with many cases, few raise an alarm") {
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
  CHECK(alarms <= 20);  // half of one in twenty falls on the side of "slower": 10, with three deviations 19.5
}

TEST_CASE("a tenth of the steps are a warm-up, but never all") {
  const auto left = [](std::size_t steps) { return after_warm_up(std::vector<double>(steps, 1.0)).size(); };
  CHECK((left(2) == 1 && left(20) == 18 && left(21) == 18 && left(1000) == 990));
  CHECK(after_warm_up({9, 1, 2}) == std::vector<double>{1, 2});
  CHECK(after_warm_up({7}) == std::vector<double>{7});
  CHECK(after_warm_up({}).empty());
  CHECK(after_warm_up({9, 8, 1, 2}, 2) == std::vector<double>{1, 2});  // as a suite or a reader says
  CHECK(after_warm_up({9, 1}, 0) == std::vector<double>{9, 1});
  CHECK(after_warm_up({9, 1}, 5) == std::vector<double>{9, 1});
}
