// The updates of optimizers, over flat ranges that need not respect the bounds of tensors. Elementwise, so that any cut gives the same bits.
//
//   adamw (Loshchilov & Hutter 2019)   m ← β₁m + (1−β₁)g      v ← β₂v + (1−β₂)g²
//                                      w ← w − rate·(m·c₁/(√(v·c₂) + ε) + decay·w)      c₁ = 1/(1−β₁ᵗ), c₂ = 1/(1−β₂ᵗ)
//   sgd with momentum                  m ← μm + g + decay·w    w ← w − rate·m
//
// A call takes all ranges of a step: on a device they are few launches, and 16-bit parameters are rounded from their masters in the same pass.
// Memory-bound: adamw reads 16 and writes 12 bytes a parameter, and 2 more where it rounds.
#pragma once
#include <array>
#include <span>

#include "src/base/random.hpp"
#include "src/math/queue.hpp"

namespace chorale {

// Where the elements of a range of a slab lie in the whole tensor, row by row.
struct Places {
  std::int64_t first = 0;                        // of the range, in the slab
  std::int64_t length = 1, columns = 1;          // of a row: in the slab, in the tensor
  std::int64_t first_row = 0, first_column = 0;  // of the slab

  constexpr std::int64_t operator()(std::int64_t element) const {
    const std::int64_t at = first + element;
    return (first_row + at / length) * columns + first_column + at % length;
  }
};

// Slices of one length, of one parameter.
struct UpdateRange {
  // In f32 or f64. In bf16 they have no master, and what an update is smaller than their last place would be lost each time: so they are rounded
  // up or down by chance, which is right on average (stochastic rounding); `random` and an element's place decide.
  Slice weights;
  std::array<Slice, 2> moments = {};  // as wide as the update is computed: f32, or f64 of f64
  Slice gradient = {};  // f32, f64 or i64; multiplied by `scale` as it is read (1/tokens, clipping, the loss scale, …)
  Slice value = {};     // of 16 bits: takes the new weights, rounded to nearest
  double scale = 1;
  bool decays = true;
  Random random = {};
  Places places = {};
};

struct AdamStep {
  double rate, beta1, beta2, epsilon, decay;
  double correction1, correction2;  // c₁, c₂
};
void adamw(const AdamStep& step, std::span<const UpdateRange> ranges, const Queue& queue);

struct SgdStep {
  double rate, momentum, decay;
};
void sgd(const SgdStep& step, std::span<const UpdateRange> ranges, const Queue& queue);  // its moment is the first

// To bf16, up with the chance that the rest is of the distance; `chance` is 16 uniform bits. What is no finite number stays what it is.
constexpr bf16 rounded_by(std::uint32_t chance, float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  bf16 rounded(value);
  if ((word & 0x7f800000u) != 0x7f800000u) rounded.bits = static_cast<std::uint16_t>((word + chance) >> 16);
  return rounded;
}

}  // namespace chorale
