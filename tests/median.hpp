// Computes the median of measured times, for benchmarks.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::test {

inline double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace chorale::test
