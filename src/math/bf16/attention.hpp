// The tile kernels of attention in bf16, for any engine. A tile of 64 × 64 is divided into blocks of 16 × 16. A block is
// skipped if none of its queries attends to any of its keys:
//
//               queries 0–15  16–31  32–47  48–63
//   keys  0–15       ░          ▒      ▒      ▒
//        16–31       ·          ░      ▒      ▒         ▒ visible, ░ partly visible, · skipped
//        32–47       ·          ·      ░      ▒
//        48–63       ·          ·      ·      ░
//
// For scores, out and dQ, adjacent blocks of queries that need the same number of keys are multiplied together, as columns.
// For dK and dV, adjacent blocks of keys that are needed by the same queries are multiplied together, as rows.
//
// The functions in this header are always inlined, because engines.cpp compiles them for the processors of each engine.
#pragma once
#include "src/base/round_up.hpp"
#include "src/math/bf16/groups.hpp"
#include "src/math/bf16/sight.hpp"

namespace chorale::attention {

inline constexpr float log2_e = 0x1.715476p+0f;

using Sixteen [[gnu::vector_size(4 * lanes), gnu::may_alias]] = float;  // one value for each of 16 queries

// Computes the dropout factors of 16 queries for the keys of a tile, [key, query]. index(l) is the dropout index of query l
// for the first key.
template <class IndexOf>
void block_factors(const Drops& drops, IndexOf&& index, float* factors) {
  alignas(64) float rows[lanes][side];
  for (std::int64_t l = 0; l < lanes; ++l) drops.factors(index(l), rows[l]);
  transpose(&rows[0][0], lanes, side, factors);
}

// Replaces the scores of 16 queries by exponentials relative to the highest score so far. The scores are [key, query], in
// rows of 64. Rescales the earlier sums. `masked` is true if at least one query does not attend to all of the keys.
template <bool masked>
[[gnu::always_inline]] inline void soften_block(float* scores, std::int64_t depth, const TileSight& sight,
                                                std::int64_t first, float scale, float* highest, float* sum, float* out,
                                                std::int64_t row) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (masked)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t l = 0; l < lanes; ++l)
        scores[k * side + l] = sight.sees(first + l, k) ? scores[k * side + l] : -infinity;
  Sixteen best = *reinterpret_cast<const Sixteen*>(scores);
  for (std::int64_t k = 1; k < depth; ++k) {  // GCC does not vectorize this loop over floats
    const Sixteen& score = *reinterpret_cast<const Sixteen*>(scores + k * side);
    best = score > best ? score : best;
  }
  float now[lanes], shrink[lanes], total[lanes] = {};
  bool changed = false;
  for (std::int64_t l = 0; l < lanes; ++l) {
    const float before = highest[l], candidate = scale * best[l];
    now[l] = candidate > before ? candidate : before;
    changed |= candidate > before && sum[l] != 0;  // a query that has not attended to any key has sums of 0
    // −∞ − (−∞) would be NaN. If the query has still not attended to any key, both values are −∞ and shrink is 1.
    shrink[l] = candidate > before ? math::exp(before - candidate) : 1.0f;
    highest[l] = now[l];
  }
  for (std::int64_t l = 0; l < lanes; ++l) now[l] *= log2_e;
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t l = 0; l < lanes; ++l) {
      const float e = math::exp2(__builtin_fmaf(scores[k * side + l], scale * log2_e, -now[l]));
      const float p = !masked || sight.sees(first + l, k) ? e : 0.0f;
      scores[k * side + l] = p;
      total[l] += p;
    }
  for (std::int64_t l = 0; l < lanes; ++l) sum[l] = __builtin_fmaf(sum[l], shrink[l], total[l]);
  if (!changed) return;
  for (std::int64_t i = 0; i < row; ++i)
    for (std::int64_t l = 0; l < lanes; ++l) out[i * side + l] *= shrink[l];
}

template <class Engine>
[[gnu::always_inline]] inline void attend_tiles(Bf16Queries& t, std::int64_t width, const Bf16Keys& keys,
                                                const Drops& drops) {
  [[maybe_unused]] const typename Engine::Session session;
  const std::int64_t row = round_up(width, lanes), words = words_of(width);
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  const std::int64_t last = *std::max_element(t.last, t.last + side);
  std::int64_t begin = last;
  for (std::int64_t r = 0; r < side; ++r)
    if (t.first[r] < t.last[r]) begin = std::min(begin, t.first[r]);
  transpose(t.rows.data(), side, words, t.turned.data());
  if (std::any_of(t.sum, t.sum + side, [](float sum) { return sum != 0; }))  // this call continues earlier results
    transpose(t.out.data(), side, row, t.turned_out.data());
  else
    std::fill_n(t.turned_out.data(), row * side, 0.0f);
  alignas(64) float scores[side * side], factors[side * lanes];
  alignas(64) Word p[pairs * side];
  for (std::int64_t key = begin / side * side; key < last; key += side) {
    const TileSight sight([&](std::int64_t r) { return Sight{t.first[r] - key, t.last[r] - key}; });
    for (std::int64_t q = 0, end = 0; q < side; q = end) {
      const std::int64_t depth = sight.depth[q / lanes];
      end = sight.run_end(q);
      if (depth == 0) continue;
      Engine::template product<false>(depth, end - q, row / 2, {keys.keys.data() + key * words, words},
                                      {t.turned.data() + q, side}, {scores + q, side});
      for (std::int64_t b = q; b < end; b += lanes) {
        float* const out = t.turned_out.data() + b;
        if (sight.all[b / lanes])
          soften_block<false>(scores + b, depth, sight, b, scale, t.highest + b, t.sum + b, out, row);
        else
          soften_block<true>(scores + b, depth, sight, b, scale, t.highest + b, t.sum + b, out, row);
        if (!drops.any()) continue;
        block_factors(
            drops, [&](std::int64_t l) { return t.dropped[b + l] + static_cast<std::uint64_t>(key); }, factors);
        for (std::int64_t k = 0; k < depth; ++k)
          for (std::int64_t l = 0; l < lanes; ++l) scores[k * side + b + l] *= factors[k * lanes + l];
      }
      Engine::round_pairs({scores + q, side}, depth, end - q, {p + q, side});
      Engine::template product<true>(row, end - q, depth / 2, {keys.columns.data() + key / 2 * row, pairs}, {p + q, side},
                                     {t.turned_out.data() + q, side});
    }
  }
  transpose(t.turned_out.data(), row, side, t.out.data());
}

// Replaces the scores and dP of 16 queries by f∘P and dS. All of these are [key, query], in rows of 64.
template <bool masked, bool drops>
[[gnu::always_inline]] inline void differentiate_block(float* p, float* ds, std::int64_t depth, const TileSight& sight,
                                                       std::int64_t first, float scale, const float* lse, const float* both,
                                                       const float* factors) {
  float shift[lanes];
  for (std::int64_t l = 0; l < lanes; ++l) shift[l] = lse[l] * log2_e;
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t l = 0; l < lanes; ++l) {
      const bool seen = !masked || sight.sees(first + l, k);
      const float factor = drops ? factors[k * lanes + l] : 1.0f;
      const float probability = math::exp2(__builtin_fmaf(p[k * side + l], scale * log2_e, -shift[l]));
      const float gradient = scale * probability * __builtin_fmaf(factor, ds[k * side + l], -both[l]);
      p[k * side + l] = seen ? factor * probability : 0.0f;
      ds[k * side + l] = seen ? gradient : 0.0f;
    }
}

template <class Engine>
[[gnu::always_inline]] inline void add_tile_gradients(Bf16Gradients& g, std::int64_t first_query, std::int64_t rows,
                                                      std::int64_t first_key, const Drops& drops, const KeyGradients& sums) {
  [[maybe_unused]] const typename Engine::Session session;
  const std::int64_t row = g.row, words = g.words;
  const TileSight sight([&](std::int64_t r) {  // padding rows get the empty range [0, 0)
    if (r >= rows) return Sight{};
    const Sight& all = g.sight[static_cast<std::size_t>(first_query + r)];
    return Sight{all.first - first_key, all.last - first_key};
  });
  alignas(64) float factors[side * lanes];
  float *const p = g.p.data(), *const ds = g.ds.data();
  for (std::int64_t q = 0, end = 0; q < side; q = end) {
    const std::int64_t depth = sight.depth[q / lanes];
    end = sight.run_end(q);
    if (depth == 0) continue;
    Engine::template product<false>(depth, end - q, row / 2, {g.keys.keys.data() + first_key * words, words},
                                    {g.turned_q.data() + first_query * words + q, side}, {p + q, side});
    Engine::template product<false>(depth, end - q, row / 2, {g.keys.values.data() + first_key * words, words},
                                    {g.turned_dout.data() + first_query * words + q, side}, {ds + q, side});
    for (std::int64_t b = q; b < end; b += lanes) {
      const std::int64_t query = first_query + b;
      const float *const lse = g.lse.data() + query, *const both = g.both.data() + query;
      if (drops.any()) {
        const std::uint64_t* const index = g.dropped.data() + query;
        block_factors(
            drops, [&](std::int64_t l) { return index[l] + static_cast<std::uint64_t>(first_key); }, factors);
        differentiate_block<true, true>(p + b, ds + b, depth, sight, b, g.scale, lse, both, factors);
      } else if (sight.all[b / lanes]) {
        differentiate_block<false, false>(p + b, ds + b, depth, sight, b, g.scale, lse, both, factors);
      } else {
        differentiate_block<true, false>(p + b, ds + b, depth, sight, b, g.scale, lse, both, factors);
      }
    }
    Engine::round_rows({p + q, side}, depth, end - q, {g.p_rows.data() + q / 2, pairs});
    Engine::round_rows({ds + q, side}, depth, end - q, {g.ds_rows.data() + q / 2, pairs});
    Engine::round_pairs({ds + q, side}, depth, end - q, {g.paired_ds.data() + q, side});
    Engine::template product<true>(row, end - q, depth / 2, {g.keys.columns.data() + first_key / 2 * row, pairs},
                                   {g.paired_ds.data() + q, side}, {g.turned_dq.data() + first_query * row + q, side});
  }
  // The index of the last key to which a query attends increases with the query's index. Therefore, if a block of queries
  // needs a key, all later blocks also need this key.
  const std::int64_t last = round_up(rows, lanes);
  for (std::int64_t k = 0, end = 0; k < side; k = end) {
    const std::int64_t q = sight.first_row_for(k);
    for (end = k + lanes; end < side && sight.first_row_for(end) == q;) end += lanes;
    if (q >= last) break;
    const std::int64_t cell = k * pairs + q / 2, queries = (first_query + q) / 2 * row;
    Engine::template product<true>(end - k, row, (last - q) / 2, {g.p_rows.data() + cell, pairs},
                                   {g.paired_dout.data() + queries, row}, {sums.dv + k * row, row});
    Engine::template product<true>(end - k, row, (last - q) / 2, {g.ds_rows.data() + cell, pairs},
                                   {g.paired_q.data() + queries, row}, {sums.dk + k * row, row});
  }
}

}  // namespace chorale::attention
