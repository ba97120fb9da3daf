// Tests of the test harness. The tests whose tags start with a dot are hidden, and fail on purpose. harness_test.py runs
// these hidden tests and checks their output.
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "tests/spmd.hpp"

using namespace chorale;
using namespace chorale::test;

TEST_CASE("ranks know one another", "[spmd]") {
  REQUIRE_ALL(world().rank() < world().size());
  REQUIRE_ALL(ranks_that_failed(false) == "");
  REQUIRE_ALL(ranks_that_failed(world().rank() == 0) == "rank 0");
}

TEST_CASE("threads meet at barriers in step", "[threads]") {
  std::atomic<int> entered{0};
  const std::string failures = on_threads(7, [&](ThreadRank& me) {
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      me.barrier();
      me.check(entered == round * me.size(), "round {}: {} entered", round, entered.load());
      me.barrier();
    }
  });
  REQUIRE(failures == "");
}

TEST_CASE("a thread that fails is named, and the others do not wait for it", "[threads]") {
  const std::string failures = on_threads(3, [](ThreadRank& me) {
    me.check(me.rank() != 2, "number {} is unlucky", me.rank());
    me.barrier();
  });
  REQUIRE(failures.find("rank 2: number 2 is unlucky") != std::string::npos);
}

TEST_CASE("fails on rank 2 alone", "[.fails-on-rank-2]") { CHECK((world().rank() != 2 && "a message from rank 2")); }

TEST_CASE("all stop together", "[.fails-together]") {
  REQUIRE_ALL(world().rank() != 1);
  std::abort();  // never reached: every rank stopped above
}

TEST_CASE("throws on rank 1 before the others agree", "[.throws-then-passes]") {
  if (world().rank() == 1) throw std::runtime_error("out of luck");
  REQUIRE_ALL(true);
  std::abort();  // never reached: rank 1 has left the case, so the other ranks stopped before
}

TEST_CASE("and the next case is in step again", "[.throws-then-passes]") {
  REQUIRE_ALL(true);
  REQUIRE_ALL(world().size() > 1);
}

TEST_CASE("hangs on rank 1", "[.hangs-on-rank-1]") {
  const timespec long_time{1000, 0};
  if (world().rank() == 1) nanosleep(&long_time, nullptr);
}

TEST_CASE("crashes on rank 1", "[.crashes-on-rank-1]") {
  if (world().rank() == 1) std::raise(SIGSEGV);
  REQUIRE_ALL(true);
}
