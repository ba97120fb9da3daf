// Selects a sample from a long list of cases, the same in every run. `make test` runs only this sample. `make test-all` runs
// all cases, or a larger sample if a second number is given.
//
//   test::Sample third(3);                        takes the first case, the fourth, the seventh, …
//   for (…) for (…) { if (!third.takes()) continue; … }
//
// In nested loops, the length of an inner loop must not be a multiple of the sample's number (3 above). Otherwise, some
// values of the loop would never be tested. Samples of layouts come from tests/parallel/covering.hpp.
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
