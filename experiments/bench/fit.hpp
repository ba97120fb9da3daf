// Fits the parameters ("prices") of the cost model to measured times t: α per message, β per byte, γ per summed byte.
// Minimizes the sum of squared relative errors.
//
//   minimize Σ ((α·a + β·b + γ·c) / t − 1)²  over α, β, γ ≥ 0      a, b, c: the model's seconds if only that price were 1
//
// A memory-bound sum takes no longer than its loads and stores, so noise can hide γ. A fitted γ of 0 would make
// sums free. In this case γ keeps its usual ratio to β, and both are fitted as one price.
#pragma once
#include <array>
#include <vector>

#include "collectives/price.hpp"

namespace chorale::bench {

struct Observed {
  std::array<double, 3> weights;  // a, b, c
  double seconds;
};

struct Fitted {
  Price price;               // a price is 0 if no sample depends on it
  bool gamma_found = false;  // false: γ is β times the usual ratio
};
Fitted fit(const std::vector<Observed>& samples, const Price& usual);

}  // namespace chorale::bench
