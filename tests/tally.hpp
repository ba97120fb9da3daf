// Counts the trials of a test that tests/chaos.py runs. At the end of the test case, even if the case fails, prints a line
// such as:
//
//   chaos: 6000 tried, 1 failed
#pragma once
#include <fmt/format.h>

#include <cstdint>

namespace chorale::test {

class Tally {
 public:
  explicit Tally(bool prints = true) : prints_(prints) {}  // in [spmd] tests, only rank 0 prints
  ~Tally() {
    if (prints_) fmt::print("chaos: {} tried, {} failed\n", tried, failed);
  }
  Tally(const Tally&) = delete;
  void add(bool held) {
    ++tried;
    failed += !held;
  }

  std::int64_t tried = 0, failed = 0;

 private:
  bool prints_;
};

}  // namespace chorale::test
