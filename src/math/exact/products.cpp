// The products of exact numerics, built from the tiles that chains.hpp computes.
//
//   product           one chain over all of K, then the bias
//   partial_product   one chain per block of K, rounded to integer units; the blocks are added
//   add_outer         one chain per block of tokens, also rounded; the blocks are added to the existing sums
//
// Rounding costs as much as 12 multiply-adds. Products with blocks of 64 therefore cost a sixth more than f32 products, and
// products with blocks of 256 cost a twentieth more. Up to eight blocks are rounded directly into the result, because for so
// few blocks a local tile of sums costs more than it saves.
#include <unistd.h>

#include "src/math/exact/chain_products.hpp"
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/host_kernels.hpp"

namespace chorale::exact {

// Some virtual machines do not report the cache size. If the size is unknown, 512 KiB is assumed, which is the smallest L2
// cache of a current server.
std::int64_t half_of_cache() {
  static const std::int64_t bytes = std::max<std::int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 512 << 10);
  return bytes / 2 / static_cast<std::int64_t>(sizeof(float));
}

void HostKernels::product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) {
  const ThreadCut cut(operands.rows, operands.columns, queue.threads);
  float* const out = y.values<float>().data();
  const float* const shift = bias ? bias->values<float>().data() : nullptr;
  plain_for(queue, cut.count(), [&](std::int64_t first, std::int64_t last) {
    chain_product(operands.a, operands.b, operands.depth, shift, cut.part(first, last), out, operands.columns);
  });
}

void HostKernels::sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto,
                             const Tensor& sums_of_blocks, SumSite& site, const Queue& queue) {
  std::int64_t* const y = sums_of_blocks.values<std::int64_t>().data();
  const ThreadCut cut(operands.rows, operands.columns, queue.threads);
  rounded_for(queue, cut.count(), site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    const auto finish = [&](const TilePlace& at, const float* a, const float* b) {
      std::int64_t* const corner = y + at.row * operands.columns + at.column;
      const bool adds = onto || at.piece.start > 0, directly = adds && at.piece.blocks.size() <= 8;
      if (onto) prefetch_tile(corner + tile_columns, at.rows, operands.columns);
      WholeTile sums;
      if (!directly) std::fill_n(sums[0], tile_rows * tile_columns, 0);
      for (const std::int64_t length : at.piece.blocks) {
        Tile tile;
        multiply<false>(a, b, length, {tile[0], tile_columns});
        a += length * tile_rows;
        b += length * tile_columns;
        if (!directly && at.rows == tile_rows && at.columns == tile_columns)
          rounding.add_numbers(sums[0], tile_rows * tile_columns, tile[0]);
        else
          for (std::int64_t i = 0; i < at.rows; ++i)  // never past the edges of the matrix
            rounding.add_numbers(directly ? corner + i * operands.columns : sums[i], at.columns, tile[i]);
      }
      if (directly) return;
      for (std::int64_t i = 0; i < at.rows; ++i) {
        std::int64_t* to = corner + i * operands.columns;
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
