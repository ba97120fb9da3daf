// Takes a sample of a long list of cases for `make test`. The sample is the same in every run. `make test-all` takes all
// cases, or a larger sample if a second number is given.
//
//   test::Sample third(3);                        takes the first case, the fourth, the seventh, …
//   for (…) for (…) { if (!third.takes()) continue; … }
//
// The lengths of the inner loops must not be multiples of the number, or some of their values would never be taken.
// tests/parallel/covering.hpp chooses layouts.
#pragma once
#include "tests/spmd.hpp"

namespace chorale::test {

class Sample {
 public:
  explicit Sample(int one_of, int in_test_all = 1) : one_of_(thorough() ? in_test_all : one_of) {}
  bool takes() { return next_++ % one_of_ == 0; }

 private:
  int one_of_, next_ = 0;
};

}  // namespace chorale::test
