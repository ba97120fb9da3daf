// α, β and γ from what was measured: those for which the cost model's times come nearest, in ratio, to the measured ones.
//
//   minimise Σ ((α·a + β·b + γ·c) / t − 1)²  over α, β, γ ≥ 0      a, b, c: the model's seconds were only that price 1
#pragma once
#include <array>
#include <vector>

#include "collectives/price.hpp"

namespace chorale::bench {

struct Observed {
  std::array<double, 3> weights;  // a, b, c
  double seconds;
};

Price fit(const std::vector<Observed>& samples);  // what nothing depends on is 0

}  // namespace chorale::bench
