// Counter-based dropout. Whether an element is kept depends on the seed, the training step, the site (the number of the
// dropout layer) and the element's index in the global batch. Therefore masks are never stored and do not depend on the
// layout. Kept elements are scaled by 1/(1 − p), where p is the dropout probability.
//
//   y = residual + dropout(x + bias)        y, residual, x [rows, width]; bias [width]
//   global index of an element: token · width + column
//
// Cost: 2 ns per random number. Without dropout, the functions are memory-bound.
#pragma once
#include "src/base/random.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct Dropout {
  double probability = 0;
  Random random = {};
  Tokens tokens = {};

  bool keeps(std::uint32_t bits) const { return bits >= static_cast<std::uint32_t>(probability * 0x1p32); }
  constexpr float scale() const { return static_cast<float>(1 / (1 - probability)); }
};

void dropout(const Tensor& x, const Dropout& dropout, const Tensor& y,
             const Queue& queue);  // in the backward pass, `x` is dy; `y` can be the same tensor as `x`
// `bias` can be null. `y` can be the same tensor as `x` or `residual`.
void add_residual(const Tensor& x, const Tensor* bias, const Dropout& dropout, const Tensor& residual, const Tensor& y,
                  const Queue& queue);

}  // namespace chorale
