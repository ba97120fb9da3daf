// Complete f32 products built from the tiles of chains.hpp, for exact numerics and for fast numerics. In all functions,
// `part` is the part that one thread computes, and `n` is the number of columns of the result.
#pragma once
#include "src/math/exact/chains.hpp"

namespace chorale::exact {

// Prefetches the result's tile at `corner`.
template <class T>
void prefetch_tile(const T* corner, std::int64_t rows, std::int64_t stride) {
  constexpr auto per_line = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < tile_columns; j += per_line) __builtin_prefetch(corner + i * stride + j, 1);
}

// Computes c = a·b, or c += a·b if `adds` is true, for the tile whose first element is at `c`.
inline void multiply(const TilePlace& at, const float* a, const float* b, bool adds, tile::Sum c) {
  const auto run = adds ? multiply<true> : multiply<false>;
  if (at.rows == tile_rows && at.columns == tile_columns) return run(a, b, at.piece.length, c);
  Tile tile = {};
  if (adds)
    for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(c.at + i * c.row, at.columns, tile[i]);
  run(a, b, at.piece.length, {tile[0], tile_columns});
  for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(tile[i], at.columns, c.at + i * c.row);
}

// Computes y = a·b (+ bias). A chain can be split at any k, because the next part continues from the partial sum in y. If y
// has 16 bits, k is not split, so that each sum is rounded only once.
template <class T, class Y>
void chain_product(const SideOf<T>& a, const SideOf<T>& b, std::int64_t depth, const T* bias, const ThreadPart& part, Y* y,
                   std::int64_t n) {
  constexpr bool in_place = std::is_same_v<Y, float>;
  const std::vector<std::int64_t> blocks = in_place ? equal_blocks(depth, 512) : equal_blocks(depth, depth);
  each_tile(a, b, part, blocks, [&](const TilePlace& at, const float* left, const float* right) {
    Y* const corner = y + at.row * n + at.column;
    prefetch_tile(corner, at.rows, n);
    Tile tile;
    if constexpr (in_place)
      multiply(at, left, right, at.piece.start > 0, {corner, n});
    else
      multiply<false>(left, right, depth, {tile[0], tile_columns});
    if (in_place && (!bias || at.piece.start + at.piece.length < depth)) return;
    for (std::int64_t i = 0; i < at.rows; ++i)
      for (std::int64_t j = 0; j < at.columns; ++j) {
        const float sum = in_place ? static_cast<float>(corner[i * n + j]) : tile[i][j];
        corner[i * n + j] = static_cast<Y>(bias ? sum + static_cast<float>(bias[at.column + j]) : sum);
      }
  });
}

// Computes y += a·b.
template <class T>
void add_chain_product(const SideOf<T>& a, const SideOf<T>& b, std::int64_t depth, const ThreadPart& part, float* y,
                       std::int64_t n) {
  each_tile(a, b, part, equal_blocks(depth, 512), [&](const TilePlace& at, const float* left, const float* right) {
    float* const corner = y + at.row * n + at.column;
    prefetch_tile(corner + tile_columns, at.rows, n);  // prefetches the next tile, because the current tile is needed
                                                       // immediately
    multiply(at, left, right, true, {corner, n});
  });
}

}  // namespace chorale::exact
