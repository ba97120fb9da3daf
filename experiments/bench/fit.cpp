#include "experiments/bench/fit.hpp"

#include <algorithm>
#include <cmath>

namespace chorale::bench {
namespace {

// Coordinate descent: each price in turn takes its best value given the others, none below zero. The problem is convex, so
// the passes run down into its one valley; three unknowns need no more cleverness.
constexpr int passes = 2000;

}  // namespace

Price fit(const std::vector<Observed>& samples) {
  std::array<double, 3> price{};
  for (int pass = 0; pass < passes; ++pass)
    for (std::size_t k = 0; k < 3; ++k) {
      double along = 0, square = 0;
      for (const Observed& sample : samples) {
        double others = 0;
        for (std::size_t other = 0; other < 3; ++other)
          if (other != k) others += price[other] * sample.weights[other];
        const double slope = sample.weights[k] / sample.seconds;
        along += slope * (1 - others / sample.seconds);
        square += slope * slope;
      }
      price[k] = square > 0 ? std::max(along / square, 0.0) : 0;
    }
  return {price[0], price[1], price[2]};
}

}  // namespace chorale::bench
