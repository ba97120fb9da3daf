// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), row by row. Statistics are summed in f32 and in a fixed
// order.
//
//   layer   y = (x − mean)·rstd·gain + shift       rstd = 1/√(variance + ε)
//   rms     y = x·rstd·gain                        rstd = 1/√(mean of squares + ε)
//
// Shapes: `x`, `y`, `dy` and `dx` are [rows, width]; `gain` and `shift` are [width]; `stats` is [rows, 2]. Each row of
// `stats` holds the mean (0 for rms) and rstd, in f32, or in f64 for f64 tensors. The functions are memory-bound. The
// forward pass reads x twice (the second time from the L1 cache) and writes y once.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

enum class NormKind : std::uint8_t { layer, rms };

void norm_forward(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor* shift, double epsilon, const Tensor& y,
                  const Tensor& stats, const Queue& queue);

// Computes `dx`, the sum of `added` and the gradient with respect to `x`. `added` is the gradient of the residual path
// around the norm. `added` can be null, or the same tensor as dx.
void norm_backward(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& stats,
                   const Tensor* added, const Tensor& dx, const Queue& queue);

}  // namespace chorale
