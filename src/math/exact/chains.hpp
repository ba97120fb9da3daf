// Products as chains: every element of a·b is one sequence of fused multiply-adds over ascending k, starting from zero. A
// tile of elements is computed at once, its columns in vector registers. k is never vectorized, so an element's bits
// depend only on its row of a and its column of b, not on the tile, the split or the thread.
//
//                   b  [k][columns of a tile]            a and b are packed into panels, padded with zeros, so one
//                      ┌────────┐                        kernel without edge cases reads them in order. 24 accumulators,
//                      │        │                        4 vectors of b and one element of a fit AVX-512's 32 registers.
//   a [k][rows]  ┌──┐  │        │                        k is cut into pieces so that b's panel and a's rows stay in the
//                │  │  └────────┘                        L2 cache; the partial sum is carried from piece to piece.
//                └──┘   tile
//
// Cost: 2·M·N·K operations; about 200 GFLOP/s on a Zen 5 core, 80 % of its peak.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "src/math/exact/kernels.hpp"

namespace chorale::exact {

constexpr std::int64_t tile_rows = 6;
#ifdef __AVX512F__
constexpr std::int64_t tile_columns = 64;
#else
constexpr std::int64_t tile_columns = 16;
#endif

using Tile = float[tile_rows][tile_columns];
using WholeTile = std::int64_t[tile_rows][tile_columns];  // sums in fixed-point units

// tile += a·b, over `length` values of k.
inline void extend(Tile& tile, const float* a, const float* b, std::int64_t length) {
  Tile sum;  // in registers
  std::memcpy(sum, tile, sizeof sum);
  for (std::int64_t k = 0; k < length; ++k)
    for (std::int64_t i = 0; i < tile_rows; ++i)
      for (std::int64_t j = 0; j < tile_columns; ++j)
        sum[i][j] = __builtin_fmaf(a[k * tile_rows + i], b[k * tile_columns + j], sum[i][j]);
  std::memcpy(tile, sum, sizeof sum);
}

// Packs one panel [length][width]: `count` ≤ width rows of a (or columns of b) from `first`, `length` values of k from
// `start`.
template <std::int64_t width>
void pack(const Side& side, std::int64_t first, std::int64_t count, std::int64_t start, std::int64_t length, float* panel) {
  if (count < width) std::fill_n(panel, length * width, 0.0f);
  const float* from = side.data + first * side.along + start * side.across;
  if (side.along == 1) {
    for (std::int64_t k = 0; k < length; ++k) std::copy_n(from + k * side.across, count, panel + k * width);
    return;
  }
  constexpr std::int64_t square = 16;  // transpose in squares that stay in the L1 cache
  for (std::int64_t k = 0; k < length; k += square)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t l = k; l < std::min(k + square, length); ++l)
        panel[l * width + i] = from[i * side.along + l * side.across];
}

// The part of the product that one thread computes.
struct Part {
  std::int64_t first_row, last_row, first_column, last_column;
};

// A tile's place in the product, and its range of k.
struct Place {
  std::int64_t row, rows, column, columns;
  std::int64_t start, length;
};

// Calls finish(place, a's panel, b's panel) for every tile and piece of k, in ascending order of pieces. The length of a
// piece is a multiple of `block`; the last piece may be shorter.
template <class Finish>
void each_tile(const Side& a, const Side& b, const Part& part, std::int64_t depth, std::int64_t block, Finish finish) {
  struct alignas(64) Line {
    float values[16];
  };
  constexpr std::int64_t piece_depth = 512, most_packed = 1 << 20;
  const std::int64_t piece = std::min(depth, std::max<std::int64_t>(1, piece_depth / block) * block);
  const std::int64_t tiles = std::max<std::int64_t>(1, most_packed / (piece * tile_rows));
  const std::int64_t height =
      std::min(tiles * tile_rows, (part.last_row - part.first_row + tile_rows - 1) / tile_rows * tile_rows);
  const auto lines = [](std::int64_t floats) { return std::make_unique_for_overwrite<Line[]>((floats + 15) / 16); };
  const auto left = lines(height * piece), right = lines(piece * tile_columns);
  float* const a_panels = left[0].values;
  float* const b_panel = right[0].values;

  for (std::int64_t start = 0; start < depth; start += piece) {
    const std::int64_t length = std::min(piece, depth - start);
    for (std::int64_t top = part.first_row; top < part.last_row; top += height) {
      const std::int64_t bottom = std::min(top + height, part.last_row);
      for (std::int64_t i = top; i < bottom; i += tile_rows)
        pack<tile_rows>(a, i, std::min(tile_rows, bottom - i), start, length, a_panels + (i - top) * length);
      for (std::int64_t j = part.first_column; j < part.last_column; j += tile_columns) {
        const std::int64_t columns = std::min(tile_columns, part.last_column - j);
        pack<tile_columns>(b, j, columns, start, length, b_panel);
        for (std::int64_t i = top; i < bottom; i += tile_rows)
          finish(Place{i, std::min(tile_rows, bottom - i), j, columns, start, length}, a_panels + (i - top) * length,
                 b_panel);
      }
    }
  }
}

}  // namespace chorale::exact
