#include "src/math/attention.hpp"

#include <limits>

#include "src/base/parallel.hpp"
#include "src/base/round_up.hpp"
#include "src/math/attention_tiles.hpp"
#include "src/math/bf16/engines.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/math/race_marks.hpp"
#include "src/math/reference/attention.hpp"

namespace chorale {
namespace attention {

void transpose_tiles(const float* from, std::int64_t count, std::int64_t row, float* to) {
  for (std::int64_t first = 0; first < count; first += side) transpose(from + first * row, side, row, to + first * row);
}

void Drops::factors(std::uint64_t first, float (&factor)[side]) const {
  std::uint32_t bits[side];
  dropout_.random.fill_bits(first, bits);
  const float kept = dropout_.scale();
  for (std::int64_t j = 0; j < side; ++j) factor[j] = dropout_.keeps(bits[j]) ? kept : 0.0f;
}

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr auto greater = [](const auto& a, const auto& b) { return b > a ? b : a; };

// Replaces row r's scores for a tile of keys by exponentials relative to the highest score so far. The scores of keys that
// the row does not attend to become 0. `columns` is the number of keys that the row's block of 8 queries needs, rounded up.
void soften(QueryTile& queries, std::int64_t r, std::int64_t first_key, std::int64_t columns, std::int64_t row,
            const Drops& drops, float* scores) {
  const auto begin = static_cast<int>(std::clamp<std::int64_t>(queries.first[r] - first_key, 0, columns));
  const auto end = static_cast<int>(std::clamp<std::int64_t>(queries.last[r] - first_key, 0, columns));
  if (begin >= end) {
    std::fill_n(scores, columns, 0.0f);
    return;
  }
  const auto seen = [begin, end](std::int64_t j) {
    return static_cast<unsigned>(static_cast<int>(j) - begin) < static_cast<unsigned>(end - begin);
  };
  float best[lanes], total[lanes] = {};
  std::fill_n(best, lanes, -infinity);
  for (std::int64_t j = 0; j < columns; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) best[l] = greater(best[l], seen(j + l) ? scores[j + l] : -infinity);
  const float highest = greater(queries.highest[r], fold_halves<lanes>(best, greater));
  for (std::int64_t j = 0; j < columns; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) {
      const float p = seen(j + l) ? math::exp(scores[j + l] - highest) : 0.0f;
      scores[j + l] = p;
      total[l] += p;
    }
  const float shrink = math::exp(queries.highest[r] - highest);
  queries.highest[r] = highest;
  queries.sum[r] = __builtin_fmaf(queries.sum[r], shrink, fold_halves<lanes>(total, std::plus<>()));
  float* out = queries.out.data() + r * row;
  for (std::int64_t i = 0; i < row; ++i) out[i] *= shrink;
  if (drops.any()) {
    float factor[side];
    drops.factors(queries.dropped[r] + static_cast<std::uint64_t>(first_key), factor);
    for (std::int64_t j = 0; j < columns; ++j) scores[j] *= factor[j];
  }
}

}  // namespace

// A padding row has the empty range [0, 0), which does not affect the range of its tile.
void attend(QueryTile& queries, std::int64_t width, const KeyTiles& keys, const Drops& drops) {
  const std::int64_t row = round_up(width, lanes), last = *std::max_element(queries.last, queries.last + side);
  std::int64_t begin = last;
  for (std::int64_t r = 0; r < side; ++r)
    if (queries.first[r] < queries.last[r]) begin = std::min(begin, queries.first[r]);
  alignas(64) float scores[tile::rows * side];
  for (std::int64_t first_key = begin / side * side; first_key < last; first_key += side)
    for (std::int64_t r = 0; r < side; r += tile::rows) {
      const std::int64_t farthest = *std::max_element(queries.last + r, queries.last + r + tile::rows);
      const std::int64_t depth = std::min(side, farthest - first_key);
      if (depth <= 0) continue;
      const std::int64_t columns = round_up(depth, lanes);
      tile::product<false>(columns, width, {queries.q.data() + r * row, row, 1},
                           {keys.transposed.data() + first_key * row, side}, {scores, side});
      for (std::int64_t i = 0; i < tile::rows; ++i)
        soften(queries, r + i, first_key, columns, row, drops, scores + i * side);
      tile::product<true>(row, depth, {scores, side, 1}, {keys.values.data() + first_key * row, row},
                          {queries.out.data() + r * row, row});
    }
}

KernelWork work(const AttentionInput& in) {
  const std::int64_t tokens = in.dropout.tokens.tokens, samples = in.qkv.dim(0) / tokens, heads = in.shape.heads();
  return {.work = Work::attention,
          .amount = 4.0 * in.pairs * static_cast<double>(heads * in.shape.width),
          .bytes = static_cast<double>(in.qkv.bytes()),
          .m = tokens,
          .n = in.keys.count,
          .k = in.shape.width,
          .batch = samples * heads};
}

KernelWork backward_work(const AttentionInput& in) {
  KernelWork both = work(in);
  both.amount *= 2.5;
  both.bytes *= 2;
  both.gradient = true;
  return both;
}

void check(const AttentionInput& in, const Tensor& out, const Tensor& lse) {
  const AttentionShape& shape = in.shape;
  const KeyRows& keys = in.keys;
  const std::int64_t rows = in.qkv.dim(0), tokens = in.dropout.tokens.tokens;
  require(shape.groups > 0 && shape.queries > 0 && shape.width > 0,
          "attention expects positive sizes, got {} groups of {} queries of width {}", shape.groups, shape.queries,
          shape.width);
  require(in.qkv.count() == rows * shape.columns(), "attention expects qkv [rows, {}], got {}", shape.columns(),
          to_string(in.qkv.shape()));
  require(tokens > 0 && rows % tokens == 0, "attention expects {} rows of every sample, got {} rows", tokens, rows);
  require((out.dtype() == in.qkv.dtype() || (out.dtype() == DType::f32 && size_of(in.qkv.dtype()) == 2)) &&
              out.count() == rows * shape.heads() * shape.width,
          "attention over qkv of type {} and shape {} expects out [rows, {}] of the same type or f32, got {} {}",
          name_of(in.qkv.dtype()), to_string(in.qkv.shape()), shape.heads() * shape.width, name_of(out.dtype()),
          to_string(out.shape()));
  const std::int64_t samples = rows / tokens;
  require(keys.tensor.dtype() == in.qkv.dtype() && keys.fits(samples),
          "{} keys of {} samples, {} rows apart, from row {} on, do not fit into {} {}", keys.count, samples,
          keys.sample_rows, keys.first_row, name_of(keys.tensor.dtype()), to_string(keys.tensor.shape()));
  require(lse || !in.continues, "attention needs lse to continue");
  if (!lse) return;
  const DType type = in.qkv.dtype() == DType::f64 ? DType::f64 : DType::f32;
  require(lse.dtype() == type && lse.count() == rows * shape.heads(), "attention expects lse {} [{}, {}], got {} {}",
          name_of(type), rows, shape.heads(), name_of(lse.dtype()), to_string(lse.shape()));
}

}  // namespace attention

KeyRows keys_of_qkv(const Tensor& qkv, const AttentionShape& shape, std::int64_t tokens) {
  return {.tensor = qkv,
          .count = tokens,
          .sample_rows = tokens,
          .offset = shape.queries * shape.width,
          .row = shape.columns(),
          .group = (shape.queries + 2) * shape.width};
}

KeyRows keys_alone(const Tensor& rows, const AttentionShape& shape, std::int64_t samples, std::int64_t count) {
  return {.tensor = rows,
          .count = count,
          .sample_rows = rows.count() / shape.key_columns() / samples,
          .row = shape.key_columns(),
          .group = 2 * shape.width};
}

// A sequence of s tokens has s²/2 pairs, because the pair of a query and its own key counts half.
AttentionInput whole_sequences(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout) {
  const std::int64_t tokens = dropout.tokens.tokens;
  return {.qkv = qkv,
          .keys = keys_of_qkv(qkv, shape, tokens),
          .shape = shape,
          .dropout = dropout,
          .pairs = static_cast<double>(qkv.dim(0) * tokens) / 2};
}

void attention_forward(const AttentionInput& in, const Tensor& out, const Tensor& lse, const Queue& queue) {
  attention::check(in, out, lse);
  const Kernel kernel(queue, "attention", attention::work(in), in.qkv.phantom());
  if (kernel.skips()) return;
  if (queue.device) return queue.device->attention_forward(in, out, lse, queue);
  mark_accesses({&in.qkv, &in.keys.tensor}, {&out, &lse});
  if (const auto* kernels = in.qkv.dtype() == DType::bf16 ? attention::chosen_bf16_engine() : nullptr)
    return attention::forward_in_bf16(*kernels, in, out, lse, queue);
  visit_results(in.qkv.dtype(), out.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    if constexpr (std::is_same_v<T, double>)
      reference::attention_forward(in, out.values<double>().data(), lse ? lse.values<double>().data() : nullptr);
    else
      attention::forward<T, S, attention::KeyTiles>(in, out, lse, queue,
                                                    [&] { return attention::QueryTile(in.shape.width); });
  });
}

}  // namespace chorale
