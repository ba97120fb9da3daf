// Cross entropy over a vocabulary of which this rank may hold a part: [first, first + columns).
//
//   maxima[row]  = max_j logits[row,j]                                       ranks agree by MAX
//   sums[row]    = Σ_j exp(logits[row,j] − maxima[row])                      Numerics::sum_exponentials; ranks add
//   hits[row]    = logits[row, target − first], or 0 where another rank has it; ranks add
//   losses[row]  = log(sums) + maxima − hits, 0 for a masked row
//   logits[row]  ← (exp(logits − maxima)/sums − [j = target − first])·scale, 0 for a masked row
//
// Targets are i32; −1 masks a row. maxima, hits, losses in f32 (f64 beside f64); sums as Numerics gives them, `unit` what one of them is
// worth.
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
