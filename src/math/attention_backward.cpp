#include "src/base/round_up.hpp"
#include "src/math/attention_gradients.hpp"
#include "src/math/bf16/engines.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/math/race_marks.hpp"
#include "src/math/reference/attention.hpp"

namespace chorale {
namespace attention {
namespace {

// Replaces the scores and dP of one row by f∘P and dS. Writes zeros if the query does not attend to the key.
void differentiate(float lse, float both, int first, int last, std::int64_t columns, const float (&factor)[side], float* p,
                   float* ds) {
  const auto length = static_cast<unsigned>(std::max(last - first, 0));
  for (int j = 0; j < static_cast<int>(columns); ++j) {
    const bool seen = static_cast<unsigned>(j - first) < length;
    const float probability = seen ? math::exp(p[j] - lse) : 0.0f;
    const float gradient = seen ? probability * __builtin_fmaf(factor[j], ds[j], -both) : 0.0f;
    p[j] = factor[j] * probability;
    ds[j] = gradient;
  }
}

}  // namespace

float dot(const float* a, const float* b, std::int64_t row) {
  float sum[lanes] = {};
  for (std::int64_t i = 0; i < row; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] = __builtin_fmaf(a[i + l], b[i + l], sum[l]);
  return fold_halves<lanes>(sum, std::plus<>());
}

// The queries of a tile are in ascending order. The first and the last keys to which these queries attend are also in
// ascending order.
void tile_backward(Gradients& g, std::int64_t first_query, std::int64_t rows, std::int64_t first_key, const Drops& drops,
                   const KeyGradients& sums) {
  const std::int64_t row = g.row, keys = first_key * row;
  const auto sight = [&](std::int64_t r) {  // the keys for row r of the tile, relative to first_key; [0, 0) for padding
    if (r >= rows) return Sight{};
    const Sight& all = g.sight[static_cast<std::size_t>(first_query + r)];
    return Sight{std::clamp<std::int64_t>(all.first - first_key, 0, side),
                 std::clamp<std::int64_t>(all.last - first_key, 0, side)};
  };
  const std::int64_t all_keys = sight(rows - 1).last;
  float factor[side];
  std::fill_n(factor, side, 1.0f);
  for (std::int64_t r = 0; r < rows; r += tile::rows) {
    const std::int64_t query = first_query + r, depth = sight(std::min(r + tile::rows, rows) - 1).last;
    if (depth == 0) continue;
    const std::int64_t columns = round_up(depth, lanes);
    float *p = g.p.data() + r * side, *ds = g.ds.data() + r * side;
    tile::product<false>(columns, g.width, {g.q.data() + query * row, row, 1}, {g.keys.transposed.data() + keys, side},
                         {p, side});
    tile::product<false>(columns, g.width, {g.dout.data() + query * row, row, 1}, {g.turned_values.data() + keys, side},
                         {ds, side});
    for (std::int64_t i = 0; i < tile::rows; ++i) {
      const auto [first, last] = sight(r + i);
      if (drops.any() && first < last)
        drops.factors(g.dropped[static_cast<std::size_t>(query + i)] + static_cast<std::uint64_t>(first_key), factor);
      differentiate(g.lse.data()[query + i], g.both.data()[query + i], static_cast<int>(first), static_cast<int>(last),
                    columns, factor, p + i * side, ds + i * side);
    }
    tile::product<true>(row, depth, {ds, side, 1}, {g.keys.keys.data() + keys, row}, {g.dq.data() + query * row, row});
  }
  for (std::int64_t k = 0, first = 0; k < all_keys; k += tile::rows) {
    while (sight(first).last <= k) ++first;  // queries before `first` attend to none of these keys
    const std::int64_t depth = rows - first, cell = first * side + k, queries = (first_query + first) * row;
    tile::product<true>(row, depth, {g.p.data() + cell, 1, side}, {g.dout.data() + queries, row}, {sums.dv + k * row, row});
    tile::product<true>(row, depth, {g.ds.data() + cell, 1, side}, {g.q.data() + queries, row}, {sums.dk + k * row, row});
  }
}

void check(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, const Tensor& dqkv,
           const KeyRows& dkeys, DType sums) {
  check(in, out, lse);
  require(dout.dtype() == in.qkv.dtype() && dout.count() == out.count(), "attention expects dout {} {}, got {} {}",
          name_of(in.qkv.dtype()), to_string(out.shape()), name_of(dout.dtype()), to_string(dout.shape()));
  require(dqkv.dtype() == out.dtype() && dqkv.count() == in.qkv.count(),
          "attention expects gradients with the shape of its input and the type of out, {} {}, got {} {}",
          name_of(out.dtype()), to_string(in.qkv.shape()), name_of(dqkv.dtype()), to_string(dqkv.shape()));
  const std::int64_t samples = in.qkv.dim(0) / in.dropout.tokens.tokens;
  require(dkeys.tensor.dtype() == sums && dkeys.count == in.keys.count && dkeys.first_token == in.keys.first_token &&
              dkeys.fits(samples),
          "gradients of {} keys of {} samples from token {} on cannot be stored as {} keys from token {} on, in {} {}",
          in.keys.count, samples, in.keys.first_token, dkeys.count, dkeys.first_token, name_of(dkeys.tensor.dtype()),
          to_string(dkeys.tensor.shape()));
}

}  // namespace attention

void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv, const KeyRows& dkeys, const Queue& queue) {
  attention::check(in, dout, out, lse, dqkv, dkeys, out.dtype());
  const Kernel kernel(queue, "gradient of attention", attention::backward_work(in), in.qkv.phantom());
  if (kernel.skips()) return;
  if (queue.device) return queue.device->attention_backward(in, dout, out, lse, dqkv, dkeys, queue);
  mark_accesses({&in.qkv, &in.keys.tensor, &dout, &out, &lse}, {&dqkv, &dkeys.tensor});
  if (const auto* kernels = in.qkv.dtype() == DType::bf16 ? attention::chosen_bf16_engine() : nullptr)
    return attention::backward_in_bf16(*kernels, in, dout, out, lse, dqkv, dkeys, queue);
  visit_results(in.qkv.dtype(), out.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    if constexpr (std::is_same_v<T, double>)
      reference::attention_backward(in, dout.values<double>().data(), out.values<double>().data(),
                                    lse.values<double>().data(), dqkv.values<double>().data(), dkeys);
    else
      attention::backward<T, S>(in, dout, out, lse, dqkv, dkeys, queue, [&] {
        return attention::Gradients(in.dropout.tokens.tokens, in.keys.count, in.shape.width);
      });
  });
}

}  // namespace chorale
