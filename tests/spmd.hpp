// The test harness. There are three kinds of tests, distinguished by tags. The last kind has two variants:
//
//   TEST_CASE("…")             one process, no launcher
//   TEST_CASE("…", "[threads]") ranks are threads of one process: on_threads(7, [](ThreadRank& me) { … })
//   TEST_CASE("…", "[spmd]")    runs under mpirun on 1 to 4 ranks, in `make test-all` also on 8; world() knows the rank
//   TEST_CASE("…", "[spmd][many]")    the same, on 8 ranks in `make test` too
//   TEST_CASE("…", "[spmd][hosts]")   the same, and also with the ranks on several emulated hosts (experiments/tools/hosts)
//
// In an [spmd] test, use REQUIRE_ALL wherever ranks continue together. REQUIRE_ALL checks locally and then agrees across
// ranks. So all ranks stop at the same line, and no rank waits forever. A failing rank shows its own message. A rank that
// hangs is ended, and its number is printed. The time limit is TEST_LIMIT seconds (default 60) for a rank that computes, and
// longer for a rank that waits (see progress.hpp).
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/mpi.hpp"
#include "src/base/wait.hpp"
#include "tests/catch.hpp"
#include "tests/progress.hpp"

namespace chorale::test {

const mpi::Runtime& world();                   // only for [spmd] tests
std::string ranks_that_failed(bool this_one);  // collective; text such as "ranks 0, 2", or "" if none failed
std::string environment(const char* name, const std::string& otherwise);
bool thorough();  // true in `make test-all`: test rare combinations and repeat more often
// Skips a long case in `make test` if a shorter case finds the same mistakes: `if (only_in_test_all("why")) return;`
bool only_in_test_all(const std::string& why);
std::string needed(const char* name);  // the value of an environment variable; throws if it is not set

// The state that the threads of one on_threads call share.
struct Crowd {
  int size;
  std::atomic<int> arrived{0};
  std::atomic<bool> broken{false};
  std::vector<std::string> failures;  // one entry per rank, so no lock is needed
};

// One rank of a threads test. Catch2 is not thread-safe, so ranks record failures and the main thread asserts.
class ThreadRank {
 public:
  ThreadRank(int rank, Crowd& crowd) : rank_(rank), crowd_(crowd) {}
  int rank() const { return rank_; }
  int size() const { return crowd_.size; }
  void barrier();  // throws if another rank has failed

  template <class... Args>
  void check(bool ok, Sentence<std::type_identity_t<Args>...> sentence, Args&&... args) {
    alive();
    if (!ok) fail(sentence.where, fmt::format(sentence.text, std::forward<Args>(args)...));
  }
  void fail(const std::source_location& where, const std::string& why);

 private:
  int rank_;
  Crowd& crowd_;
  SystemClock clock_;
  int barriers_ = 0;
};

// Runs the body on `size` threads. Returns the failures, one per line, or "" if there were none.
std::string on_threads(int size, const std::function<void(ThreadRank&)>& body);

}  // namespace chorale::test

#define REQUIRE_ALL(...)                                                                     \
  do {                                                                                       \
    CHECK(__VA_ARGS__);                                                                      \
    const bool passed_here = Catch::getResultCapture().lastAssertionPassed();                \
    const std::string failed_on = chorale::test::ranks_that_failed(!passed_here);            \
    if (!failed_on.empty()) FAIL("REQUIRE_ALL( " #__VA_ARGS__ " ) failed on " << failed_on); \
  } while (false)

// The call must throw on every rank, with an error text that contains `words`.
#define REQUIRE_ALL_THROWS(call, words)                   \
  do {                                                    \
    std::string thrown = "nothing";                       \
    try {                                                 \
      call;                                               \
    } catch (const std::exception& error) {               \
      thrown = error.what();                              \
    }                                                     \
    INFO("thrown: " << thrown);                           \
    REQUIRE_ALL(thrown.find(words) != std::string::npos); \
  } while (false)
