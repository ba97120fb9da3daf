#include "experiments/compare/pace.hpp"

#include "tests/catch.hpp"

namespace chorale::compare {

TEST_CASE("a comparison begins as many repetitions as fit into its budget, and at least one") {
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
  CHECK(repetitions(90, 100) == 1);  // the first always runs
  CHECK(repetitions(90, 10) == 3);   // fits exactly
  CHECK(repetitions(89, 10) == 2);
  CHECK(repetitions(90, 1) == 6);
}

TEST_CASE("the next repetition is expected to take as long as the longest so far") {
  VirtualClock clock;
  Pace pace(100, clock);
  REQUIRE(pace.may_begin(1));
  clock.sleep(40);
  REQUIRE(pace.may_begin(2));
  clock.sleep(20);
  CHECK(pace.may_begin(3));  // 60 s have passed, and 40 s still fit
  clock.sleep(5);
  CHECK_FALSE(pace.may_begin(4));
}

TEST_CASE("a comparison predicts the number of runs within its budget") {
  VirtualClock clock;
  Pace pace(100, clock);
  CHECK(pace.expected(0, 18, 3) == 3);  // no run has ended, so nothing is known
  clock.sleep(10);
  CHECK(pace.expected(1, 18, 3) == 9);  // 10 s each: three repetitions of 30 s
  clock.sleep(90);
  CHECK(pace.expected(2, 18, 3) == 3);  // 50 s each: the first repetition is finished anyway
  CHECK(pace.expected(2, 2, 3) == 2);   // a resumed comparison: at most the remaining runs
  CHECK(Pace(0, clock).expected(2, 18, 3) == 18);
}

}  // namespace chorale::compare
