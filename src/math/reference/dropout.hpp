// Dropout, computed one element and one random number at a time.
#pragma once
#include "src/math/dropout.hpp"

namespace chorale::reference {

// y = residual + dropout(x + bias) for the rows [first, last). The pointers `bias` and `residual` can be null.
template <class T>
void dropout(const T* x, const T* bias, const Dropout& dropout, const T* residual, T* y, std::int64_t width,
             std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t at = row * width + j;
      const auto place = static_cast<std::uint64_t>(dropout.tokens.global(row) * width + j);
      const T value = bias ? x[at] + bias[j] : x[at];
      const bool kept = dropout.probability == 0 || dropout.keeps(dropout.random.bits(place));
      const T dropped = value * (kept ? static_cast<T>(dropout.scale()) : 0);
      y[at] = residual ? residual[at] + dropped : dropped;
    }
}

}  // namespace chorale::reference
