// The products of exact numerics, from the tiles that chains.hpp computes.
//
//   product           one chain over all of K, then the bias
//   partial_product   one chain per block of K, rounded to integer units; the blocks are added
//   add_outer         one chain per block of tokens, rounded likewise; the blocks are added to the existing sums
//
// Rounding costs as much as 12 multiply-adds, so blocks of 64 cost a sixth more than f32, blocks of 256 a twentieth more.
#include "src/math/exact/chains.hpp"
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/host_kernels.hpp"

namespace chorale::exact {
namespace {

// Threads split the rows of the tiles. If there are few rows, as when one token is generated, the threads split the
// columns instead.
struct Cut {
  const Operands& whole;
  bool by_rows;

  Cut(const Operands& operands, int threads) : whole(operands), by_rows(operands.rows >= 8 * threads * tile_rows) {}
  std::int64_t count() const {
    return by_rows ? (whole.rows + tile_rows - 1) / tile_rows : (whole.columns + tile_columns - 1) / tile_columns;
  }
  Part part(std::int64_t first, std::int64_t last) const {
    if (by_rows) return {first * tile_rows, std::min(last * tile_rows, whole.rows), 0, whole.columns};
    return {0, whole.rows, first * tile_columns, std::min(last * tile_columns, whole.columns)};
  }
};

}  // namespace

void HostKernels::product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) {
  const Cut cut(operands, queue.threads);
  float* const out = y.values<float>().data();
  const float* const shift = bias ? bias->values<float>().data() : nullptr;
  // A chain may be cut anywhere, because its next part continues from the sum.
  constexpr std::int64_t part = 512;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(operands.depth / part), part);
  if (operands.depth % part > 0) parts.push_back(operands.depth % part);
  plain_for(queue, cut.count(), [&](std::int64_t first, std::int64_t last) {
    const auto finish = [&](const Place& at, const float* a, const float* b) {
      Tile tile = {};
      float* const corner = out + at.row * operands.columns + at.column;
      if (at.piece.start > 0)  // continue the chain of the previous piece
        for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(corner + i * operands.columns, at.columns, tile[i]);
      extend(tile, a, b, at.piece.length);
      const bool ends = shift && at.piece.start + at.piece.length == operands.depth;
      for (std::int64_t i = 0; i < at.rows; ++i) {
        float* to = corner + i * operands.columns;
        for (std::int64_t j = 0; j < at.columns; ++j) to[j] = ends ? tile[i][j] + shift[at.column + j] : tile[i][j];
      }
    };
    each_tile(operands.a, operands.b, cut.part(first, last), parts, finish);
  });
}

void HostKernels::sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto,
                             const Tensor& sums_of_blocks, SumSite& site, const Queue& queue) {
  std::int64_t* const y = sums_of_blocks.values<std::int64_t>().data();
  const Cut cut(operands, queue.threads);
  rounded_for(queue, cut.count(), site, [&](std::int64_t first, std::int64_t last, Rounding& rounding) {
    const auto finish = [&](const Place& at, const float* a, const float* b) {
      WholeTile sums = {};
      if (onto) prefetch_next(y + at.row * operands.columns + at.column, at.rows, operands.columns);
      for (const std::int64_t length : at.piece.blocks) {
        Tile tile = {};
        extend(tile, a, b, length);
        a += length * tile_rows, b += length * tile_columns;
        const float* row = tile[0];  // elements beyond the edges are never read
        if (at.rows == tile_rows && at.columns == tile_columns)
          rounding.add(sums[0], tile_rows * tile_columns, [&](std::int64_t j) { return row[j]; });
        else
          for (std::int64_t i = 0; i < at.rows; ++i, row += tile_columns)
            rounding.add(sums[i], at.columns, [&](std::int64_t j) { return row[j]; });
      }
      const bool adds = onto || at.piece.start > 0;
      for (std::int64_t i = 0; i < at.rows; ++i) {
        std::int64_t* to = y + (at.row + i) * operands.columns + at.column;
        for (std::int64_t j = 0; j < at.columns; ++j) to[j] = adds ? plus(to[j], sums[i][j]) : sums[i][j];
      }
    };
    each_tile(operands.a, operands.b, cut.part(first, last), blocks, finish);
  });
}

void HostKernels::settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) {
  const std::int64_t* const sums = partial.values<std::int64_t>().data();
  float* const values = y.values<float>().data();
  plain_for(queue, y.count(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) values[i] = static_cast<float>(sums[i]) * unit;
  });
}

}  // namespace chorale::exact
