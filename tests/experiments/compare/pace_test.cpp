#include "experiments/compare/pace.hpp"

#include "tests/catch.hpp"

namespace chorale::compare {

TEST_CASE("a comparison begins as many repetitions as fit into its budget, and at least one") {
  VirtualClock clock;
  const auto repetitions = [&](double budget, double seconds_of_a_run) {
    Pace pace(budget, std::vector<std::int64_t>(6, 3), clock);
    for (std::int64_t repetition = 1; repetition <= 6; ++repetition)
      for (int run = 0; run < 3; ++run) {
        if (!pace.may_begin(repetition)) return repetition - 1;
        clock.sleep(seconds_of_a_run);
      }
    return std::int64_t{6};
  };
  CHECK(repetitions(0, 100) == 6);   // a budget of 0 means no limit
  CHECK(repetitions(90, 100) == 1);  // the first repetition always runs
  CHECK(repetitions(90, 10) == 3);   // three repetitions fit exactly
  CHECK(repetitions(89, 10) == 2);
  CHECK(repetitions(90, 1) == 6);
}

TEST_CASE("the next repetition is expected to take as long as the longest so far") {
  VirtualClock clock;
  Pace pace(100, {3, 3, 3, 3}, clock);
  REQUIRE(pace.may_begin(1));
  clock.sleep(40);
  REQUIRE(pace.may_begin(2));
  clock.sleep(20);
  CHECK(pace.may_begin(3));  // 60 s have passed, and the next repetition of 40 s still fits
  clock.sleep(5);
  CHECK_FALSE(pace.may_begin(4));
}

TEST_CASE("after a short first repetition, the next one is expected to take as long as its turns") {
  VirtualClock clock;
  Pace pace(100, {0, 1, 4, 4}, clock);
  REQUIRE(pace.may_begin(2));
  clock.sleep(15);
  REQUIRE(pace.may_begin(3));  // the four runs of repetition 3 take 60 s
  clock.sleep(60);
  CHECK_FALSE(pace.may_begin(4));
}

TEST_CASE("a first repetition that will exceed the budget is foreseen after two turns") {
  VirtualClock clock;
  Pace pace(100, {6, 6}, clock), alone(100, {1, 1}, clock), unlimited(0, {6, 6}, clock);
  for (Pace* const each : {&pace, &alone, &unlimited}) REQUIRE(each->may_begin(1));
  CHECK(pace.overrun(0) == 0);
  clock.sleep(60);
  CHECK(pace.overrun(1) == 0);   // too early for an estimate: one of six runs has ended
  CHECK(alone.overrun(1) == 0);  // the only run fits into the budget
  CHECK(pace.overrun(2) == 180);
  CHECK(unlimited.overrun(2) == 0);
  CHECK(pace.overrun(4) == 0);  // six runs take 90 s, which is within the budget
  clock.sleep(60);
  CHECK(alone.overrun(1) == 120);
  REQUIRE(alone.may_begin(1));
  CHECK_FALSE(alone.may_begin(2));
}

TEST_CASE("a comparison predicts the number of runs within its budget") {
  VirtualClock clock;
  const Pace pace(100, std::vector<std::int64_t>(6, 3), clock);
  CHECK(pace.expected(0) == 3);  // no run has ended, so there is no estimate yet
  clock.sleep(10);
  CHECK(pace.expected(1) == 9);  // 10 s per run, so three repetitions of 30 s fit
  clock.sleep(90);
  CHECK(pace.expected(2) == 3);  // 50 s per run, but the first repetition is always completed
  CHECK(Pace(0, {3, 3, 3}, clock).expected(2) == 9);
}

TEST_CASE("a resumed comparison counts the runs that are left") {
  VirtualClock clock;
  const Pace last(45, {0, 0, 3}, clock), more(60, {0, 2, 5, 5}, clock);
  CHECK(last.expected(0) == 3);
  CHECK(more.expected(0) == 2);
  clock.sleep(10);
  CHECK(last.expected(1) == 3);
  CHECK(more.expected(1) == 2);   // 10 s per run, so seven take 70 s
  CHECK(more.expected(2) == 12);  // 5 s per run
  clock.sleep(10);
  CHECK(last.expected(1) == 3);  // 20 s per run exceed the budget, but the repetition has begun
  CHECK(more.expected(2) == 7);  // the second repetition has begun
}

}  // namespace chorale::compare
