// Optimizer updates over flat ranges, which can begin or end inside a tensor. Updates are elementwise, so every partition
// into ranges gives bit-identical results.
//
//   adamw (Loshchilov & Hutter 2019)   m ← β₁m + (1−β₁)g      v ← β₂v + (1−β₂)g²
//                                      w ← w − rate·(m·c₁/(√(v·c₂) + ε) + decay·w)      c₁ = 1/(1−β₁ᵗ), c₂ = 1/(1−β₂ᵗ)
//   sgd with momentum                  m ← μm + g + decay·w    w ← w − rate·m
//
// One call processes all ranges of a step, so a device needs few launches. The same pass rounds the f32 master copies to
// 16-bit parameters. Updates are memory-bound. With f32 weights and gradients, adamw reads 16 and writes 12 bytes per
// parameter, plus 2 bytes if it rounds.
#pragma once
#include <array>
#include <span>

#include "src/base/random.hpp"
#include "src/math/queue.hpp"

namespace chorale {

// Maps an element of a range to its index in the complete tensor. The range is inside a shard. A shard is a rectangle of the
// tensor: the rows and columns that this rank has.
struct Places {
  std::int64_t first = 0;                        // index, in the shard, of the range's first element
  std::int64_t length = 1, columns = 1;          // `length` is the row length of the shard; `columns` is the row length of
                                                 // the tensor
  std::int64_t first_row = 0, first_column = 0;  // position of the shard's first element in the tensor

  constexpr std::int64_t operator()(std::int64_t element) const {
    const std::int64_t at = first + element;
    return (first_row + at / length) * columns + first_column + at % length;
  }
};

// A part of one parameter, given by slices of equal length.
struct UpdateRange {
  // The type is f32 or f64, or bf16 if there is no master copy. Updates of bf16 weights use stochastic rounding, because
  // rounding to nearest would lose small updates. The rounding of an element depends on `random` and the element's index in
  // the complete tensor.
  Slice weights;
  std::array<Slice, 2> moments = {};  // f32, or f64 for f64 weights
  Slice gradient = {};  // f32, bf16, f64 or i64; multiplied by `scale` when read (1/tokens, clipping, loss scale, …)
  Slice value = {};     // optional 16-bit copy, which is set to the new weights, rounded to nearest
  double scale = 1;
  bool decays = true;  // false: no weight decay
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
void sgd(const SgdStep& step, std::span<const UpdateRange> ranges, const Queue& queue);  // uses moments[0]

// Stochastic rounding to bf16. A value between two neighboring bf16 values is rounded away from zero with probability d/D.
// Here d is the distance of the value from the neighbor of smaller magnitude, and D is the distance between the two
// neighbors. `chance` holds 16 uniform random bits. Inf and NaN stay unchanged.
constexpr bf16 rounded_by(std::uint32_t chance, float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  bf16 rounded(value);
  if ((word & 0x7f800000u) != 0x7f800000u) rounded.bits = static_cast<std::uint16_t>((word + chance) >> 16);
  return rounded;
}

}  // namespace chorale
