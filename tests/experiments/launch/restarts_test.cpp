// Checks what a launch does after each end of a run: starts again, waits, or gives up.
#include "experiments/launch/restarts.hpp"

#include "tests/catch.hpp"

namespace chorale::launch {
namespace {

EndOfRun death(int rank, const char* doing, std::int64_t saved) {
  return {.how = Ended::died, .exit_code = 4, .rank = rank, .doing = doing, .saved = saved};
}
EndOfRun failure(int code, std::int64_t saved) {
  return {.how = Ended::failed, .exit_code = code, .rank = 1, .saved = saved};
}

TEST_CASE("a complete run, and one that was asked to end, end the launch") {
  for (const Ended how : {Ended::complete, Ended::stopped}) {
    Restarts restarts(10);
    const NextStart next = restarts.after({.how = how});
    CHECK(!next.comes);
    CHECK(next.exit_code == 0);
    CHECK(restarts.count() == 0);
  }
}

TEST_CASE("starts without progress wait longer and longer, and a saved step ends the series") {
  Restarts restarts(100);
  std::vector<double> waits;
  for (int i = 0; i < 10; ++i) waits.push_back(restarts.after(death(i, "step 5", 4)).wait_seconds);
  CHECK(waits == std::vector<double>{0, 1, 2, 4, 8, 16, 32, 60, 60, 60});
  CHECK(restarts.after(death(0, "step 9", 8)).wait_seconds == 0);
  CHECK(restarts.after(death(1, "step 9", 8)).wait_seconds == 1);
}

TEST_CASE("a step that always kills the same rank ends the launch after three deaths") {
  Restarts restarts(100);
  CHECK(restarts.after(death(2, "step 17", 16)).comes);
  CHECK(restarts.after(death(2, "step 17", 16)).comes);
  const NextStart next = restarts.after(death(2, "step 17", 16));
  CHECK(!next.comes);
  CHECK(next.exit_code == 4);
  CHECK(next.why == "step 17 has killed rank 2 3 times");
}

TEST_CASE("deaths of other ranks, in other steps, or with progress between them are no crash loop") {
  Restarts restarts(100);
  for (int i = 0; i < 5; ++i) {
    CHECK(restarts.after(death(i % 2, "step 17", 16)).comes);
    CHECK(restarts.after(death(0, i % 2 ? "step 18" : "step 19", 16)).comes);
  }
  for (int saved = 20; saved < 26; ++saved) CHECK(restarts.after(death(0, "saving step 30", saved)).comes);
  for (int i = 0; i < 6; ++i) CHECK(restarts.after(death(-1, "", 40)).comes);  // an unknown rank is never the same rank
}

TEST_CASE("a launcher that starts no rank is tried again as long as a saved step waits") {
  const auto refused = [](std::int64_t saved) {
    return EndOfRun{.how = Ended::not_started, .exit_code = 1, .saved = saved};
  };
  Restarts at_first(10);
  CHECK(at_first.after(refused(-1)).comes);
  const NextStart next = at_first.after(refused(-1));
  CHECK((!next.comes && next.exit_code == 1 && next.why == "the launcher started no rank twice"));
  Restarts later(6);
  CHECK(later.after(death(3, "step 17", 16)).comes);
  double waited = 0;
  for (int i = 0; i < 5; ++i) waited += later.after(refused(16)).wait_seconds;
  CHECK(waited == 1 + 2 + 4 + 8 + 16);
  CHECK(later.after(refused(16)).why == "--max-restarts is 6");
}

TEST_CASE("a failure is repeated once, a wrong request never") {
  Restarts restarts(10);
  CHECK(restarts.after(failure(1, 5)).comes);
  CHECK(restarts.after(failure(1, 6)).comes);  // with progress, the state is another one
  const NextStart next = restarts.after(failure(1, 6));
  CHECK(!next.comes);
  CHECK(next.exit_code == 1);
  for (const int code : {2, 3}) {
    Restarts fresh(10);
    const NextStart refused = fresh.after(failure(code, 5));
    CHECK(!refused.comes);
    CHECK(refused.exit_code == code);
    CHECK(fresh.count() == 0);
  }
  Restarts fresh(10);
  CHECK(fresh.after({.how = Ended::unknown}).comes);
  CHECK(fresh.after({.how = Ended::unknown}).exit_code == 4);
}

TEST_CASE("a launch starts again at most so many times") {
  Restarts restarts(2);
  CHECK(restarts.after(death(0, "step 1", 1)).comes);
  CHECK(restarts.after(death(0, "step 2", 2)).comes);
  const NextStart next = restarts.after(death(0, "step 3", 3));
  CHECK(!next.comes);
  CHECK(next.exit_code == 4);
  CHECK(!Restarts(0).after(death(0, "step 1", 1)).comes);
}

}  // namespace
}  // namespace chorale::launch
