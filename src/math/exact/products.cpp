// The products of exact numerics: what becomes of the tiles that chains.hpp computes.
//
//   product           one chain over all of K, then the bias
//   partial_product   one chain for each block of K, rounded to whole units; their sum
//   add_outer         the same over blocks of tokens, added to what is there
//
// Rounding takes as long as 12 multiply-adds, so a block of 64 costs a sixth more than f32, one of 256 a twentieth.
#include "src/math/exact/chains.hpp"
#include "src/math/exact/exact_numerics.hpp"
#include "src/math/exact/fixed_point.hpp"

namespace chorale::exact {
namespace {

// Both sides of y[rows, columns] = Σ over depth.
struct Operands {
  Side a, b;
  std::int64_t rows, columns, depth;
};

const float* floats(const Tensor& tensor) { return static_cast<const float*>(tensor.slice().data); }

Operands operands(const Tensor& x, const Tensor& w, bool transposed, const Tensor& y) {
  const std::int64_t m = x.dim(0), k = x.dim(1), n = w.dim(transposed ? 0 : 1), inner = w.dim(transposed ? 1 : 0);
  require(inner == k && y.dim(0) == m && y.dim(1) == n, "x {} times w {}{} is not y {}", to_string(x.shape()),
          to_string(w.shape()), transposed ? " transposed" : "", to_string(y.shape()));
  require_values(x, "x");
  require_values(w, "w");
  return {{floats(x), k, 1}, {floats(w), transposed ? k : 1, transposed ? 1 : n}, m, n, k};
}

// Threads take rows of tiles; columns where there are few rows, as when one token is generated.
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

// y = or += Σ over blocks of depth.
void sum_blocks(const Operands& operands, std::int64_t block, bool onto, std::int64_t* y, Site& site, const Queue& queue) {
  const Cut cut(operands, queue.threads);
  rounded_for(queue, cut.count(), site, [&](std::int64_t first, std::int64_t last, Rounding& rounding) {
    const auto finish = [&](const Place& at, const float* a, const float* b) {
      WholeTile sums = {};
      for (std::int64_t k = 0; k < at.length; k += block) {
        Tile tile = {};
        extend(tile, a + k * tile_rows, b + k * tile_columns, std::min(block, at.length - k));
        const float* row = tile[0];  // what stands beyond the edges is never looked at
        if (at.rows == tile_rows && at.columns == tile_columns)
          rounding.add(sums[0], tile_rows * tile_columns, [&](std::int64_t j) { return row[j]; });
        else
          for (std::int64_t i = 0; i < at.rows; ++i, row += tile_columns)
            rounding.add(sums[i], at.columns, [&](std::int64_t j) { return row[j]; });
      }
      const bool adds = onto || at.start > 0;
      for (std::int64_t i = 0; i < at.rows; ++i) {
        std::int64_t* to = y + (at.row + i) * operands.columns + at.column;
        for (std::int64_t j = 0; j < at.columns; ++j) to[j] = adds ? plus(to[j], sums[i][j]) : sums[i][j];
      }
    };
    each_tile(operands.a, operands.b, cut.part(first, last), operands.depth, block, finish);
  });
}

}  // namespace

void ExactNumerics::product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
                            const Queue& queue) {
  const Operands operands = exact::operands(x, w, transposed, y);
  require_values(y, "y");
  require(!bias || (bias->count() == operands.columns && bias->dtype() == DType::f32), "a bias for {} columns has shape {}",
          operands.columns, bias ? to_string(bias->shape()) : "");
  if (any_phantom({&x, &w, bias, &y})) return;
  const Cut cut(operands, queue.threads);
  float* const out = y.values<float>().data();
  const float* const shift = bias ? floats(*bias) : nullptr;
  plain_for(queue, cut.count(), [&](std::int64_t first, std::int64_t last) {
    const auto finish = [&](const Place& at, const float* a, const float* b) {
      Tile tile = {};
      float* const corner = out + at.row * operands.columns + at.column;
      if (at.start > 0)  // the chain goes on from where it was left
        for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(corner + i * operands.columns, at.columns, tile[i]);
      extend(tile, a, b, at.length);
      const bool ends = shift && at.start + at.length == operands.depth;
      for (std::int64_t i = 0; i < at.rows; ++i) {
        float* to = corner + i * operands.columns;
        for (std::int64_t j = 0; j < at.columns; ++j) to[j] = ends ? tile[i][j] + shift[at.column + j] : tile[i][j];
      }
    };
    each_tile(operands.a, operands.b, cut.part(first, last), operands.depth, 1, finish);
  });
}

void ExactNumerics::partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y,
                                    Site& site, const Queue& queue) {
  const Operands operands = exact::operands(x, w, transposed, y);
  require_sums(y, "y");
  require(block > 0, "blocks of {} inputs", block);
  if (any_phantom({&x, &w, &y})) return;
  sum_blocks(operands, block, false, y.values<std::int64_t>().data(), site, queue);
}

void ExactNumerics::add_outer(const Tensor& x, const Tensor& dy, std::int64_t leaf, const Tensor& dw, Site& site,
                              const Queue& queue) {
  const std::int64_t tokens = x.dim(0), k = x.dim(1), n = dy.dim(1);
  require(dy.dim(0) == tokens && dw.dim(0) == k && dw.dim(1) == n, "x {} and dy {} do not make dw {}", to_string(x.shape()),
          to_string(dy.shape()), to_string(dw.shape()));
  require(leaf > 0 && tokens % leaf == 0, "{} tokens are no whole number of leaves of {}", tokens, leaf);
  require_values(x, "x");
  require_values(dy, "dy");
  require_sums(dw, "dw");
  if (any_phantom({&x, &dy, &dw})) return;
  const Operands operands{{floats(x), 1, k}, {floats(dy), 1, n}, k, n, tokens};
  sum_blocks(operands, leaf, true, dw.values<std::int64_t>().data(), site, queue);
}

void ExactNumerics::settle(const Tensor& partial, const Tensor& y, const Site& site, const Queue& queue) {
  require(partial.count() == y.count(), "sums {} do not settle into {}", to_string(partial.shape()), to_string(y.shape()));
  require_sums(partial, "the partial sum");
  require_values(y, "y");
  if (any_phantom({&partial, &y})) return;
  const std::int64_t* const sums = partial.values<std::int64_t>().data();
  float* const values = y.values<float>().data();
  const float unit = static_cast<float>(exact::unit(site));
  plain_for(queue, y.count(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) values[i] = static_cast<float>(sums[i]) * unit;
  });
}

}  // namespace chorale::exact
