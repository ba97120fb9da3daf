#include "experiments/compare/pace.hpp"

#include "tests/catch.hpp"

namespace chorale::compare {

TEST_CASE("a comparison begins as many repetitions as fit into its budget, and one in any case") {
  VirtualClock clock;
  const auto repetitions = [&](double budget, double seconds_of_a_run) {
    Pace pace(budget, clock);
    for (std::int64_t repetition = 1; repetition <= 6; ++repetition)
      for (int run = 0; run < 3; ++run) {
        if (!pace.may_begin(repetition)) return repetition - 1;
        clock.sleep(seconds_of_a_run);
      }
    return std::int64_t{6};
  };
  CHECK(repetitions(0, 100) == 6);   // no limit
  CHECK(repetitions(90, 100) == 1);  // whatever it takes
  CHECK(repetitions(90, 10) == 3);   // to the second
  CHECK(repetitions(89, 10) == 2);
  CHECK(repetitions(90, 1) == 6);
}

TEST_CASE("a repetition that took longer than the others is expected again") {
  VirtualClock clock;
  Pace pace(100, clock);
  REQUIRE(pace.may_begin(1));
  clock.sleep(40);
  REQUIRE(pace.may_begin(2));
  clock.sleep(20);
  CHECK(pace.may_begin(3));  // 60 s are over, and 40 fit
  clock.sleep(5);
  CHECK_FALSE(pace.may_begin(4));
}

TEST_CASE("a comparison foresees the turns that its budget allows") {
  VirtualClock clock;
  Pace pace(100, clock);
  CHECK(pace.expected(0, 18, 3) == 3);  // nothing is known yet
  clock.sleep(10);
  CHECK(pace.expected(1, 18, 3) == 9);  // 10 s each: three repetitions of 30 s
  clock.sleep(90);
  CHECK(pace.expected(2, 18, 3) == 3);  // 50 s each: the first is finished all the same
  CHECK(pace.expected(2, 2, 3) == 2);   // of a comparison that goes on, no more than is left
  CHECK(Pace(0, clock).expected(2, 18, 3) == 18);
}

}  // namespace chorale::compare
