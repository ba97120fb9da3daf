// Cross entropy over a vocabulary. A rank can hold a part of the vocabulary: the logits of the entries [first, first +
// columns).
//
//   maxima[row]  = max_j logits[row,j]                                       reduced over ranks by MAX
//   sums[row]    = Σ_j exp(logits[row,j] − maxima[row])                      Numerics::sum_exponentials; summed over ranks
//   hits[row]    = the target's logit: logits[row, target − first]           0 on other ranks; summed over ranks
//   losses[row]  = log(sums) + maxima − hits, 0 for a masked row
//   logits[row]  ← (exp(logits − maxima)/sums − [j = target − first])·scale, 0 for a masked row
//
// Targets are i32; −1 masks a row. The tensors `maxima`, `hits` and `losses` are f32, or f64 for f64 logits. `sums` has the
// type that Numerics::gradient_type() returns. An element q of `sums` represents the value q·unit, where `unit` is 1 for
// floats and the fixed-point unit for integers.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

void row_maxima(const Tensor& logits, const Tensor& maxima, const Queue& queue);
void target_logits(const Tensor& logits, const Tensor& targets, std::int64_t first, const Tensor& hits, const Queue& queue);
void token_losses(const Tensor& maxima, const Tensor& sums, double unit, const Tensor& hits, const Tensor& targets,
                  const Tensor& losses, const Queue& queue);
void cross_entropy_gradient(const Tensor& logits, const Tensor& maxima, const Tensor& sums, double unit,
                            const Tensor& targets, std::int64_t first, double scale, const Queue& queue);

}  // namespace chorale
