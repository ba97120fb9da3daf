// What counts as slower: past the threshold, a speed, and not by chance, also among many.
#include "experiments/report/comparison.hpp"

#include "experiments/report/record_set.hpp"
#include "tests/catch.hpp"

using namespace chorale::report;

TEST_CASE("slower is what is a speed, past the threshold, and significant among all that were compared") {
  const Difference fell{.name = "step_time", .unit = Unit::seconds, .ratio = 1.2, .p = 1e-4, .loss = 0.2, .is_speed = true};
  CHECK(slower({fell}, 0.05).size() == 1);
  CHECK(slower({fell}, 0.25).empty());
  Difference other = fell;
  other.is_speed = false;
  CHECK(slower({other}, 0.05).empty());
  other = fell, other.p = 0.2;
  CHECK(slower({other}, 0.05).empty());
  other = fell, other.loss = -0.2;
  CHECK(slower({other}, 0.05).empty());
  CHECK(slower(std::vector<Difference>(100, fell), 0.05).size() == 100);
  CHECK(slower(std::vector<Difference>(1000, fell), 0.05).empty());  // by chance, one in a thousand is as improbable as this
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
