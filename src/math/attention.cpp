#include "src/math/attention.hpp"

#include <limits>

#include "src/base/parallel.hpp"
#include "src/math/attention_tiles.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/reference/attention.hpp"

namespace chorale {
namespace attention {

namespace {

// Transposes a 16 × 16 block in four rounds. Each round interleaves rows i and i + 8 into rows 2i and 2i + 1, like a
// perfect card shuffle.
void transpose_block(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  float block[2][lanes][lanes];
  for (std::int64_t i = 0; i < lanes; ++i) std::copy_n(from + i * from_row, lanes, block[0][i]);
  for (int round = 0; round < 4; ++round)
    for (std::int64_t i = 0; i < lanes / 2; ++i) {
      const float *a = block[round % 2][i], *b = block[round % 2][i + lanes / 2];
      float* both = block[1 - round % 2][2 * i];  // rows 2i and 2i + 1
#pragma GCC unroll 1                              // if this loop is unrolled, GCC does not vectorize it
      for (std::int64_t l = 0; l < lanes; ++l) {
        both[2 * l] = a[l];
        both[2 * l + 1] = b[l];
      }
    }
  for (std::int64_t i = 0; i < lanes; ++i) std::copy_n(block[0][i], lanes, to + i * to_row);
}

}  // namespace

void transpose_tiles(const float* from, std::int64_t count, std::int64_t row, float* to) {
  for (std::int64_t first = 0; first < count; first += side, from += side * row, to += side * row)
    for (std::int64_t i = 0; i < row; i += lanes)
      for (std::int64_t r = 0; r < side; r += lanes) transpose_block(from + r * row + i, row, to + i * side + r, side);
}

void Drops::factors(std::uint64_t first, float (&factor)[side]) const {
  std::uint32_t bits[side];
  dropout_.random.fill_bits(first, bits);
  const float kept = dropout_.scale();
  for (std::int64_t j = 0; j < side; ++j) factor[j] = dropout_.keeps(bits[j]) ? kept : 0.0f;
}

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float greater(float a, float b) { return b > a ? b : a; }

// Replaces row r's scores for a tile of keys by exponentials relative to the highest score so far. Scores of keys that the
// row does not see become 0. `columns` is the number of keys that the row's block of 8 queries needs, rounded up.
void soften(QueryTile& queries, std::int64_t r, std::int64_t first_key, std::int64_t columns, std::int64_t row,
            const Drops& drops, float* scores) {
  const auto count = static_cast<int>(std::clamp<std::int64_t>(queries.seen[r] - first_key, 0, columns));
  if (count == 0) {
    std::fill_n(scores, columns, 0.0f);
    return;
  }
  float best[lanes], total[lanes] = {};
  std::fill_n(best, lanes, -infinity);
  for (std::int64_t j = 0; j < columns; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l)
      best[l] = greater(best[l], static_cast<int>(j + l) < count ? scores[j + l] : -infinity);
  const float highest = greater(queries.highest[r], across(best, greater));
  for (std::int64_t j = 0; j < columns; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) {
      const float p = static_cast<int>(j + l) < count ? math::exp(scores[j + l] - highest) : 0.0f;
      scores[j + l] = p;
      total[l] += p;
    }
  const float shrink = math::exp(queries.highest[r] - highest);
  queries.highest[r] = highest;
  queries.sum[r] = __builtin_fmaf(queries.sum[r], shrink, across(total, [](float a, float b) { return a + b; }));
  float* out = queries.out.data() + r * row;
  for (std::int64_t i = 0; i < row; ++i) out[i] *= shrink;
  if (drops.any()) {
    float factor[side];
    drops.factors(queries.dropped[r] + static_cast<std::uint64_t>(first_key), factor);
    for (std::int64_t j = 0; j < columns; ++j) scores[j] *= factor[j];
  }
}

}  // namespace

void attend(QueryTile& queries, std::int64_t width, const KeyTiles& keys, const Drops& drops) {
  const std::int64_t row = up_to(width, lanes), seen = *std::max_element(queries.seen, queries.seen + side);
  std::fill_n(queries.highest, side, -infinity);
  std::fill_n(queries.sum, side, 0.0f);
  std::fill_n(queries.out.data(), side * row, 0.0f);
  alignas(64) float scores[tile::rows * side];
  for (std::int64_t first_key = 0; first_key < seen; first_key += side)
    for (std::int64_t r = 0; r < side; r += tile::rows) {
      const std::int64_t farthest = *std::max_element(queries.seen + r, queries.seen + r + tile::rows);
      const std::int64_t depth = std::min(side, farthest - first_key);
      if (depth <= 0) continue;
      const std::int64_t columns = up_to(depth, lanes);
      tile::product<false>(columns, width, {queries.q.data() + r * row, row, 1},
                           {keys.transposed.data() + first_key * row, side}, {scores, side});
      for (std::int64_t i = 0; i < tile::rows; ++i)
        soften(queries, r + i, first_key, columns, row, drops, scores + i * side);
      tile::product<true>(row, depth, {scores, side, 1}, {keys.values.data() + first_key * row, row},
                          {queries.out.data() + r * row, row});
    }
}

void check(const Tensor& qkv, const AttentionShape& shape, const Tensor& out) {
  require(shape.groups > 0 && shape.queries > 0 && shape.width > 0,
          "attention expects positive sizes, got {} groups of {} queries of width {}", shape.groups, shape.queries,
          shape.width);
  require(qkv.count() == qkv.dim(0) * shape.columns(), "attention expects qkv [rows, {}], got {}", shape.columns(),
          to_string(qkv.shape()));
  require(out.dtype() == qkv.dtype() && out.count() == qkv.dim(0) * shape.heads() * shape.width,
          "attention over qkv of type {} and shape {} expects out [rows, {}] of the same type, got {} {}",
          name_of(qkv.dtype()), to_string(qkv.shape()), shape.heads() * shape.width, name_of(out.dtype()),
          to_string(out.shape()));
}

// Both products. Causal attention computes half of the weights.
double flops(std::int64_t rows, const AttentionShape& shape, std::int64_t tokens) {
  return 2.0 * static_cast<double>(rows * tokens) * static_cast<double>(shape.heads() * shape.width);
}

void check(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out, const Tensor& lse) {
  check(qkv, shape, out);
  const std::int64_t tokens = dropout.tokens.tokens;
  require(tokens > 0 && dropout.tokens.first_token == 0 && qkv.dim(0) % tokens == 0,
          "attention expects rows of whole sequences, got {} rows for {} tokens of a sequence from token {}", qkv.dim(0),
          tokens, dropout.tokens.first_token);
  const DType type = qkv.dtype() == DType::f64 ? DType::f64 : DType::f32;
  require(lse.dtype() == type && lse.count() == qkv.dim(0) * shape.heads(), "attention expects lse {} [{}, {}], got {} {}",
          name_of(type), qkv.dim(0), shape.heads(), name_of(lse.dtype()), to_string(lse.shape()));
}

}  // namespace attention

void attention_forward(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out,
                       const Tensor& lse, const Queue& queue) {
  attention::check(qkv, shape, dropout, out, lse);
  if (qkv.phantom()) return queue.note(Work::attention, attention::flops(qkv.dim(0), shape, dropout.tokens.tokens));
  if (queue.device) return queue.device->attention_forward(qkv, shape, dropout, out, lse, queue);
  const std::int64_t rows = qkv.dim(0), tokens = dropout.tokens.tokens, width = shape.width;
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T* from = qkv.values<T>().data();
    T* to = out.values<T>().data();
    if constexpr (std::is_same_v<T, double>) {
      reference::attention_forward(from, rows, shape, dropout, to, lse.values<double>().data());
    } else {
      using namespace attention;
      float* logs = lse.values<float>().data();
      parallel_for(queue.threads, rows / tokens * shape.groups, [&](std::int64_t first, std::int64_t last) {
        const Drops drops(dropout, shape);
        KeyTiles keys(tokens, width);
        QueryTile queries(width);
        for (std::int64_t pair = first; pair < last; ++pair) {
          const std::int64_t row = pair / shape.groups * tokens, group = pair % shape.groups;
          const T* key = from + row * shape.columns() + (group * (shape.queries + 2) + shape.queries) * width;
          keys.load(key, key + width, shape.columns(), tokens, width);
          attend_group(from, row, tokens, 0, shape, group, keys, drops, queries, to, logs);
        }
      });
    }
  });
}

}  // namespace chorale
