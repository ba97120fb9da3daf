// LayerNorm and RMSNorm, computed directly from their formulas, and their derivatives:
//
//   x̂ = (x − mean)·rstd      g = dy·gain
//   layer   dx = rstd·(g − mean(g) − x̂·mean(g·x̂))
//   rms     dx = rstd·(g − x̂·mean(g·x̂))
#pragma once
#include <cmath>

#include "src/math/norm.hpp"

namespace chorale::reference {

template <class T>
void norm_forward(NormKind kind, const T* x, const T* gain, const T* shift, double epsilon, T* y, T* stats,
                  std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width, stats += 2) {
    T mean = 0, squares = 0;
    if (kind == NormKind::layer)
      for (std::int64_t j = 0; j < width; ++j) mean += x[j] / static_cast<T>(width);
    for (std::int64_t j = 0; j < width; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const T rstd = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(epsilon));
    for (std::int64_t j = 0; j < width; ++j) y[j] = (x[j] - mean) * rstd * gain[j] + (shift ? shift[j] : 0);
    stats[0] = mean;
    stats[1] = rstd;
  }
}

template <class T>
void norm_backward(NormKind kind, const T* dy, const T* x, const T* gain, const T* stats, const T* added, T* dx,
                   std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * width;
    const T mean = stats[2 * row], rstd = stats[2 * row + 1];
    T mean_g = 0, mean_gx = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const T g = dy[at + j] * gain[j];
      if (kind == NormKind::layer) mean_g += g / static_cast<T>(width);
      mean_gx += g * (x[at + j] - mean) * rstd / static_cast<T>(width);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      const T normal = (x[at + j] - mean) * rstd;
      dx[at + j] = (added ? added[at + j] : 0) + rstd * (dy[at + j] * gain[j] - mean_g - normal * mean_gx);
    }
  }
}

}  // namespace chorale::reference
