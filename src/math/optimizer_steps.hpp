// The updates of optimizers, over flat ranges that need not respect the bounds of tensors. Elementwise, so that any cut gives the same bits.
//
//   adamw (Loshchilov & Hutter 2019)   m ← β₁m + (1−β₁)g      v ← β₂v + (1−β₂)g²
//                                      w ← w − rate·(m·c₁/(√(v·c₂) + ε) + decay·w)      c₁ = 1/(1−β₁ᵗ), c₂ = 1/(1−β₂ᵗ)
//   sgd with momentum                  m ← μm + g + decay·w    w ← w − rate·m
//
// The gradient is f32, f64 or i64 and is multiplied by `scale` as it is read (1/tokens, clipping, the loss scale, the unit of exact sums).
// Memory-bound: adamw reads 16 and writes 12 bytes a parameter.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

struct AdamStep {
  double rate, beta1, beta2, epsilon, decay;
  double correction1, correction2;  // c₁, c₂
};
void adamw(const AdamStep& step, const Slice& weights, const Slice& moment1, const Slice& moment2, const Slice& gradient,
           double scale, const Queue& queue);

struct SgdStep {
  double rate, momentum, decay;
};
void sgd(const SgdStep& step, const Slice& weights, const Slice& moment, const Slice& gradient, double scale,
         const Queue& queue);

void add(const Slice& from, const Slice& to, const Queue& queue);   // to += from, of one type
void cast(const Slice& from, const Slice& to, const Queue& queue);  // between floating types, rounded to nearest even

}  // namespace chorale
