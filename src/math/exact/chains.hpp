// Matrix products in which every element of a·b is a chain: a sequence of fused multiply-adds over ascending k, starting
// from zero. The elements of a tile are computed together, with the columns of the tile in vector registers. The loop over k
// is never vectorized. An element therefore depends bit for bit only on its row of a and its column of b, and not on the
// tile, the partition or the thread.
//
//                   b  [k][columns of a tile]            a and b are packed into panels, padded with zeros, so one
//                      ┌────────┐                        kernel without edge cases reads them in order. 24 accumulators,
//                      │        │                        4 vectors of b and one element of a fit AVX-512's 32 registers;
//   a [k][rows]  ┌──┐  │        │                        12, 2 and one fit AVX2's 16. k is split into blocks so that a group
//                │  │  └────────┘                        of b's panels stays in the L2 cache and a's rows in the L1 cache;
//                └──┘   tile                             the partial sum is carried from block to block.
//
// Cost: 2·M·N·K operations; about 200 GFLOP/s on a Zen 5 core, 80 % of its peak.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/math/exact/pack.hpp"
#include "src/math/tile.hpp"

namespace chorale::exact {

constexpr int tile_registers = tile::lanes == 16 ? 4 : 2;
constexpr std::int64_t tile_rows = 6;
constexpr std::int64_t tile_columns = tile_registers * tile::lanes;

using Tile = float[tile_rows][tile_columns];
using WholeTile = std::int64_t[tile_rows][tile_columns];  // sums in fixed-point units

// Computes one tile of the product of two panels, over `length` values of k: c = a·b, or c += a·b if `adds` is true.
template <bool adds>
void multiply(const float* a, const float* b, std::int64_t length, tile::Sum c) {
  tile::panel<tile_rows, tile_registers, adds>(length, {a, 1, tile_rows}, {b, tile_columns}, c);
}

// The part of the product that one thread computes.
struct ThreadPart {
  std::int64_t first_row, last_row, first_column, last_column;
};

// Threads split the rows of tiles. If there are few rows, for example when one token is generated, the threads split the
// columns instead.
struct ThreadCut {
  std::int64_t rows, columns;
  bool by_rows;

  ThreadCut(std::int64_t m, std::int64_t n, int threads) : rows(m), columns(n), by_rows(m >= 8 * threads * tile_rows) {}
  std::int64_t count() const {
    return by_rows ? (rows + tile_rows - 1) / tile_rows : (columns + tile_columns - 1) / tile_columns;
  }
  ThreadPart part(std::int64_t first, std::int64_t last) const {
    if (by_rows) return {first * tile_rows, std::min(last * tile_rows, rows), 0, columns};
    return {0, rows, first * tile_columns, std::min(last * tile_columns, columns)};
  }
};

// Consecutive blocks of k, packed together.
struct PackedPiece {
  std::int64_t start, length;
  std::span<const std::int64_t> blocks;  // the lengths of the blocks
};

// Splits the depth into blocks of this length; the last block can be shorter. Returns the lengths of the blocks.
inline std::vector<std::int64_t> equal_blocks(std::int64_t depth, std::int64_t length) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(depth / length), length);
  if (depth % length > 0) blocks.push_back(depth % length);
  return blocks;
}

// Groups the blocks into PackedPieces of at most 512 values of k. A longer block becomes a separate PackedPiece.
inline std::vector<PackedPiece> pieces_of(std::span<const std::int64_t> blocks) {
  constexpr std::int64_t most = 512;
  std::vector<PackedPiece> pieces;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (pieces.empty() || pieces.back().length + blocks[i] > most)
      pieces.push_back({pieces.empty() ? 0 : pieces.back().start + pieces.back().length, 0, blocks.subspan(i, 0)});
    PackedPiece& piece = pieces.back();
    piece.length += blocks[i];
    piece.blocks = {piece.blocks.data(), piece.blocks.size() + 1};
  }
  return pieces;
}

std::int64_t half_of_cache();  // half of this core's L2 cache, in floats

// The position of a tile in the product, and its range of k.
struct TilePlace {
  std::int64_t row, rows, column, columns;
  const PackedPiece& piece;
};

// Calls finish(place, a's panel, b's panel) for every tile and every PackedPiece (range of k), in ascending order of k. Each
// round packs as many panels of b as fit into half of the L2 cache. Then the tiles of a row strip are computed one after
// another. With a shorter k, each round therefore reads longer contiguous runs of b, and writes longer runs of the result.
template <class T, class Finish>
void each_tile(const SideOf<T>& a, const SideOf<T>& b, const ThreadPart& part, std::span<const std::int64_t> blocks,
               Finish finish) {
  struct alignas(64) Line {
    float values[16];
  };
  constexpr std::int64_t most_packed = 1 << 20;  // floats
  const std::vector<PackedPiece> pieces = pieces_of(blocks);
  std::int64_t longest = 1;
  for (const PackedPiece& piece : pieces) longest = std::max(longest, piece.length);
  const auto most = [longest](std::int64_t floats, std::int64_t tile, std::int64_t count) {  // in whole tiles
    return std::min(std::max(floats / longest / tile, std::int64_t{1}), (count + tile - 1) / tile) * tile;
  };
  const std::int64_t height = most(most_packed, tile_rows, part.last_row - part.first_row);
  const std::int64_t width = most(half_of_cache(), tile_columns, part.last_column - part.first_column);
  const auto lines = [](std::int64_t floats) { return std::make_unique_for_overwrite<Line[]>((floats + 15) / 16); };
  const auto left = lines(height * longest), right = lines(width * longest);

  // If consecutive columns of b are adjacent in memory, eight values of k at a time are packed into all panels. If panels
  // were packed one by one, only a short run would be read at each k. These short runs are often 4 KiB apart, so they share
  // few cache sets.
  const std::int64_t run = b.along == 1 ? 8 : longest;

  for (const PackedPiece& piece : pieces)
    for (std::int64_t top = part.first_row; top < part.last_row; top += height) {
      const std::int64_t start = piece.start, length = piece.length, bottom = std::min(top + height, part.last_row);
      const auto a_panel = [&](std::int64_t i) { return left[0].values + (i - top) * length; };
      const auto rows_at = [&](std::int64_t i) { return std::min(tile_rows, bottom - i); };
      for (std::int64_t i = top; i < bottom; i += tile_rows) pack<tile_rows>(a, i, rows_at(i), start, length, a_panel(i));
      for (std::int64_t begin = part.first_column; begin < part.last_column; begin += width) {
        const std::int64_t end = std::min(begin + width, part.last_column);
        const auto b_panel = [&](std::int64_t j) { return right[0].values + (j - begin) * length; };
        const auto columns_at = [&](std::int64_t j) { return std::min(tile_columns, end - j); };
        for (std::int64_t k = 0; k < length; k += run)
          for (std::int64_t j = begin; j < end; j += tile_columns)
            pack<tile_columns>(b, j, columns_at(j), start + k, std::min(run, length - k), b_panel(j) + k * tile_columns);
        for (std::int64_t i = top; i < bottom; i += tile_rows)
          for (std::int64_t j = begin; j < end; j += tile_columns)
            finish(TilePlace{i, rows_at(i), j, columns_at(j), piece}, a_panel(i), b_panel(j));
      }
    }
}

}  // namespace chorale::exact
