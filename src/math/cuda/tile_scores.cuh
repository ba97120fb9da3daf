// Masks for a warp's attention scores. The masks exclude the keys to which a query must not attend, and the weights that
// dropout does not keep. The 32 rows of the scores correspond to the warp's own tokens, and the n columns to the tokens of a
// second tile. The second tile starts `ahead` tokens after the warp's own tokens. The warp's own tokens are queries, and the
// tokens of the second tile are keys. If of_keys is true, the roles are exchanged.
//
//   ahead           −32     0     32        for n = 32, without of_keys
//   visible keys    all   some   none
#pragma once
#include <limits>
#include <numbers>

#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/tiles.cuh"

namespace chorale::cuda {

// Exponentials are computed as powers of two: exp(score/√width) = 2^(score·binary).
template <int width>
constexpr float inverse_root = width == 64 ? 0.125f : 0.08838834764831845f;
template <int width>
constexpr float binary = inverse_root<width>* std::numbers::log2e_v<float>;

enum class SightKind { none, some, all };

template <bool of_keys, int n>
__device__ SightKind sight(int ahead) {
  if (of_keys ? ahead + n <= 0 : ahead >= warp_rows) return SightKind::none;
  return (of_keys ? ahead + 1 >= warp_rows : ahead + n <= 1) ? SightKind::all : SightKind::some;
}

// Applies the causal mask: sets the score to −∞ where the key comes after the query. Does nothing if all keys are visible.
template <bool of_keys, int n>
__device__ void hide_future(float (&s)[2][n][4], int ahead) {
  if (sight<of_keys, 8 * n>(ahead) == SightKind::all) return;
  // In the lane's first row, the column of the row's own token is `edge` columns to the right of the lane's first column.
  // From each row to the next, the column of the row's own token moves one column to the right.
  const int edge = row_of(0, 0) - column_of(0, 0) - ahead;
  each_element<8 * n>([&](int f, int j, int e) {
    const int right = 8 * j + e % 2 - (16 * f + e / 2 * 8);
    if (of_keys ? right < edge : right > edge) s[f][j][e] = -std::numeric_limits<float>::infinity();
  });
}

// Records whether dropout keeps each weight of this lane: one bit per score, one word per fragment.
using Kept = std::uint32_t[2];
__device__ inline bool keeps(const Kept& kept, int f, int j, int e) { return kept[f] >> (4 * j + e) & 1; }

// Draws the bits of `kept`. The inner loop must not be unrolled, because random numbers computed in parallel would use all
// registers. `place` is the dropout index of the score in the first row and column.
template <bool of_keys, int n>
__device__ void draw(const Dropout& dropout, std::uint64_t place, Kept& kept) {
  auto factors = factors_of<float>(dropout);
  const auto sequence = static_cast<std::uint64_t>(dropout.tokens.sequence);
#pragma unroll
  for (int f = 0; f < 2; ++f) {
    kept[f] = 0;
#pragma unroll 1
    for (int i = 0; i < n / 2; ++i) {
      const auto row = static_cast<std::uint64_t>(row_of(f, i % 4)),
                 column = static_cast<std::uint64_t>(column_of(i / 4, i % 4));
      const float factor = factors.at(place + (of_keys ? column * sequence + row : row * sequence + column));
      kept[f] |= (factor > 0 ? 1u : 0u) << i;
    }
  }
}

// Returns whether the tile kernels support these heads. If they do, first calls f with two arguments, the width and whether
// dropout is on. The dropout flag is a compile-time constant, because code for random numbers uses registers even if it does
// not run.
template <class F>
bool in_tiles(const AttentionShape& shape, const Dropout& dropout, bool aligned, F&& f) {
  if (!aligned || (shape.width != 64 && shape.width != 128)) return false;
  const auto with_width = [&](auto width) {
    if (dropout.probability > 0) return f(width, std::true_type{});
    f(width, std::false_type{});
  };
  if (shape.width == 64)
    with_width(std::integral_constant<int, 64>{});
  else
    with_width(std::integral_constant<int, 128>{});
  return true;
}

// The tile, head and sample that a block computes. `rank` orders the tiles by the length of their loops; the tile with the
// longest loop has rank 0. The blocks of rank 0 come first in the grid, for all heads and samples, so that no block with a
// long loop starts last.
struct TilePart {
  int rank, head, sample;
};
__device__ inline TilePart part_of_block(int tiles, int heads) {
  const int all = static_cast<int>(gridDim.x) / tiles, one = static_cast<int>(blockIdx.x) % all;
  return {static_cast<int>(blockIdx.x) / all, one % heads, one / heads};
}

}  // namespace chorale::cuda
