// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), row by row, statistics in f32 in a fixed order.
//
//   layer   y = (x − mean)·rstd·gain + shift       rstd = 1/√(variance + ε)
//   rms     y = x·rstd·gain                        rstd = 1/√(mean of squares + ε)
//
// x, y, dy, dx [rows, width]; gain, shift [width]; stats [rows, 2]: mean (0 for rms) and rstd, in f32 (f64 beside f64). Memory-bound:
// reads x twice (once from the first cache), writes y once.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

enum class NormKind : std::uint8_t { layer, rms };

void norm_forward(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor* shift, double epsilon, const Tensor& y,
                  const Tensor& stats, const Queue& queue);

// dx = added + gradient with respect to x; `added` (may be null, may be dx) is what comes around the norm through the residual.
void norm_backward(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& stats,
                   const Tensor* added, const Tensor& dx, const Queue& queue);

}  // namespace chorale
