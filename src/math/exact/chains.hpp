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
#include <span>
#include <vector>

#include "src/math/exact/kernels.hpp"
#include "src/math/tile.hpp"

namespace chorale::exact {

constexpr std::int64_t tile_rows = 6;
#ifdef __AVX512F__
constexpr std::int64_t tile_columns = 64;
#else
constexpr std::int64_t tile_columns = 16;
#endif

using Tile = float[tile_rows][tile_columns];
using WholeTile = std::int64_t[tile_rows][tile_columns];  // sums in fixed-point units

// tile += a·b, over `length` values of k. The registers are explicit, because GCC 12 vectorizes plain loops badly for AVX2:
// products took 20 times as long.
inline void extend(Tile& tile, const float* a, const float* b, std::int64_t length) {
  using namespace chorale::tile;
  constexpr int width = tile_columns / lanes;
  Register sum[tile_rows][width];
#pragma GCC unroll 6
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) sum[i][j] = *reinterpret_cast<const Unaligned*>(tile[i] + j * lanes);
  for (std::int64_t k = 0; k < length; ++k) {
    Register right[width];
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) right[j] = *reinterpret_cast<const Unaligned*>(b + k * tile_columns + j * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < width; ++j) sum[i][j] = fused(a[k * tile_rows + i], right[j], sum[i][j]);
  }
#pragma GCC unroll 6
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) *reinterpret_cast<Unaligned*>(tile[i] + j * lanes) = sum[i][j];
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

// Consecutive blocks of k that are packed together.
struct Piece {
  std::int64_t start, length;
  std::span<const std::int64_t> blocks;  // their lengths
};

// Pieces of at most 512 values of k, or of one longer block.
inline std::vector<Piece> pieces_of(std::span<const std::int64_t> blocks) {
  constexpr std::int64_t most = 512;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (pieces.empty() || pieces.back().length + blocks[i] > most)
      pieces.push_back({pieces.empty() ? 0 : pieces.back().start + pieces.back().length, 0, blocks.subspan(i, 0)});
    Piece& piece = pieces.back();
    piece.length += blocks[i];
    piece.blocks = {piece.blocks.data(), piece.blocks.size() + 1};
  }
  return pieces;
}

// A tile's place in the product, and its range of k.
struct Place {
  std::int64_t row, rows, column, columns;
  const Piece& piece;
};

// Calls finish(place, a's panel, b's panel) for every tile and piece of k, in ascending order of pieces. If all of b's
// panels fit into half of the L2 cache, the tiles of a row strip follow each other. Then the result is read and written in
// long runs, which matters if k is short.
template <class Finish>
void each_tile(const Side& a, const Side& b, const Part& part, std::span<const std::int64_t> blocks, Finish finish) {
  struct alignas(64) Line {
    float values[16];
  };
  constexpr std::int64_t most_packed = 1 << 20, half_of_cache = 1 << 17;  // floats
  const std::vector<Piece> pieces = pieces_of(blocks);
  std::int64_t longest = 1;
  for (const Piece& piece : pieces) longest = std::max(longest, piece.length);
  const auto padded = [](std::int64_t count, std::int64_t tile) { return (count + tile - 1) / tile * tile; };
  const std::int64_t columns = padded(part.last_column - part.first_column, tile_columns);
  const bool in_strips = longest * columns <= half_of_cache;
  const std::int64_t tiles = in_strips ? 1 : std::max<std::int64_t>(1, most_packed / (longest * tile_rows));
  const std::int64_t height = std::min(tiles * tile_rows, padded(part.last_row - part.first_row, tile_rows));
  const auto lines = [](std::int64_t floats) { return std::make_unique_for_overwrite<Line[]>((floats + 15) / 16); };
  const auto left = lines(height * longest), right = lines(longest * (in_strips ? columns : tile_columns));
  float* const a_panels = left[0].values;
  float* const b_panels = right[0].values;

  for (const Piece& piece : pieces) {
    const std::int64_t start = piece.start, length = piece.length;
    const auto columns_at = [&](std::int64_t j) { return std::min(tile_columns, part.last_column - j); };
    const auto b_panel = [&](std::int64_t j) { return b_panels + (in_strips ? (j - part.first_column) * length : 0); };
    const auto pack_b = [&](std::int64_t j) { pack<tile_columns>(b, j, columns_at(j), start, length, b_panel(j)); };
    if (in_strips)
      for (std::int64_t j = part.first_column; j < part.last_column; j += tile_columns) pack_b(j);
    for (std::int64_t top = part.first_row; top < part.last_row; top += height) {
      const std::int64_t bottom = std::min(top + height, part.last_row);
      for (std::int64_t i = top; i < bottom; i += tile_rows)
        pack<tile_rows>(a, i, std::min(tile_rows, bottom - i), start, length, a_panels + (i - top) * length);
      for (std::int64_t j = part.first_column; j < part.last_column; j += tile_columns) {
        if (!in_strips) pack_b(j);
        for (std::int64_t i = top; i < bottom; i += tile_rows)
          finish(Place{i, std::min(tile_rows, bottom - i), j, columns_at(j), piece}, a_panels + (i - top) * length,
                 b_panel(j));
      }
    }
  }
}

// Begins to fetch the result's tile to the right of this one.
template <class T>
void prefetch_next(const T* corner, std::int64_t rows, std::int64_t stride) {
  constexpr auto per_line = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < tile_columns; j += per_line) __builtin_prefetch(corner + i * stride + tile_columns + j, 1);
}

}  // namespace chorale::exact
