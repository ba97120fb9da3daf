// Fits α, β and γ to measured times, so that the cost model's times come nearest to them in ratio.
//
//   minimize Σ ((α·a + β·b + γ·c) / t − 1)²  over α, β, γ ≥ 0      a, b, c: the model's seconds if only that price were 1
//
// Sums that wait for memory anyway cost nothing beyond the bytes that they load and store, so noise can hide γ. A fit of 0
// would make sums free. Then γ keeps its usual ratio to β, and the two are fitted as one.
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
  Price price;               // 0 where no sample depends on it
  bool gamma_found = false;  // else γ is β times its usual ratio
};
Fitted fit(const std::vector<Observed>& samples, const Price& usual);

}  // namespace chorale::bench
