// Tests the Pareto front of memory and speed. The front contains the runs that no other run beats in both.
#include "experiments/report/figures/pareto.hpp"

#include "tests/catch.hpp"

using namespace chorale::report;
using Places = std::vector<std::size_t>;

TEST_CASE("the Pareto front keeps the runs that no other run beats") {
  const std::vector<RunDot> runs{{"a", 4, 10}, {"b", 1, 2}, {"c", 2, 5}, {"d", 3, 5}, {"e", 4, 9}, {"f", absent, 99}};
  CHECK(pareto_front(runs, true) == Places{1, 2, 0});
  CHECK(pareto_front(runs, false) == Places{1});  // this run has the smallest value and the least memory
  CHECK(pareto_front({{"a", 1, 5}, {"b", 1, 5}, {"c", 1, 4}}, true) == Places{0, 1});  // equal runs are both on the front
  CHECK(pareto_front({{"a", 2, 3}, {"b", 1, 5}, {"c", 3, 1}}, false) == Places{1, 0, 2});
  CHECK(pareto_front({}, true).empty());
}

TEST_CASE("a trade-off needs two runs with both numbers") {
  const Criterion& speed = all_criteria().front();
  CHECK_FALSE(tradeoff_of({{"a", 1, 5}}, speed));
  CHECK_FALSE(tradeoff_of({{"a", 1, 5}, {"b", absent, 7}}, speed));
  const auto tradeoff = tradeoff_of({{"a", 2, 5}, {"b", 1, 3}, {"c", 2, 4}}, speed);
  REQUIRE(tradeoff);
  CHECK(tradeoff->finding == "On the Pareto front of speed and memory: b and a.");
  CHECK(tradeoff_of({{"a", 1, 5}, {"b", 2, 3}}, speed)->finding == "a also needs the least memory.");
  CHECK(tradeoff_of({{"a", 1, 5}, {"b", 2, 3}, {"c", absent, 7}}, speed)->finding ==
        "Among the runs whose memory is known, a is the best in speed and memory.");
  std::vector<RunDot> many{{"run", absent, 99}};
  for (int i = 1; i <= 9; ++i) many.push_back({"run", double(i), double(i)});
  CHECK(tradeoff_of(many, speed)->finding == "9 of 9 runs are on the Pareto front of speed and memory.");
}
