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
  CHECK((warm_up(0) == 0 && warm_up(1) == 0 && warm_up(2) == 1 && warm_up(20) == 2 && warm_up(1000) == 10));
  CHECK(steady({9, 1, 2}) == std::vector<double>{1, 2});
  CHECK(steady({7}) == std::vector<double>{7});
  CHECK(steady({}).empty());
}
