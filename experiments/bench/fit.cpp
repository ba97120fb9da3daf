#include "experiments/bench/fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace chorale::bench {
namespace {

// Coordinate descent: sets each of α, β and γ in turn to its best value of at least 0, given the current values of the
// others. The problem is convex, so this converges to its only minimum.
constexpr int passes = 2000;

Price descend(const std::vector<Observed>& samples) {
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

}  // namespace

Fitted fit(const std::vector<Observed>& samples, const Price& usual) {
  const Price free = descend(samples);
  if (free.gamma > 0) return {free, true};
  const double ratio = usual.gamma / usual.beta;
  std::vector<Observed> joined = samples;
  for (Observed& sample : joined) sample.weights[1] += ratio * std::exchange(sample.weights[2], 0);
  Price price = descend(joined);
  price.gamma = ratio * price.beta;
  return {price, false};
}

}  // namespace chorale::bench
