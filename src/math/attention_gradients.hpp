// The backward pass of attention for one group, tile by tile. With P = exp(Q·Kᵀ − lse) recomputed, f the dropout factors and
// D = Σ do·o per row:
//
//   dS = P ∘ (f ∘ (dO·Vᵀ) − D)        dQ += dS·K        dK += dSᵀ·Q        dV += (f ∘ P)ᵀ·dO
//
// These are five matrix products; the forward pass has two. Keys, values and their gradients stay in memory for all query
// heads of the group. Q is scaled by 1/√width when it is loaded, so dK needs no scaling; dQ is scaled when it is stored.
//
// dQ is one chain over the keys. dK and dV are sums over queries and query heads, which ranks may divide. Fast numerics
// makes them one chain. Exact numerics makes a chain for every leaf of consecutive queries, and adds the chains as
// integers (exact/attention.cpp). `KeySums` says which:
//
//   leaf()                            the length of a leaf
//   begin(key)                        where this leaf's chains for the 64 keys from `key` on are: {dk, dv}
//   end(key)                          these chains are complete
#pragma once
#include "src/math/attention_tiles.hpp"

namespace chorale::attention {

struct KeyGradients {
  float *dk, *dv;  // rows of the padded width
};

// The matrices of one group, [tokens, width] with padding unless noted.
struct Gradients {
  Gradients(std::int64_t queries, std::int64_t key_count, std::int64_t width)
      : queries(queries),
        key_count(key_count),
        width(width),
        row(up_to(width, lanes)),
        keys(key_count, width),
        turned_values(up_to(key_count, side) * row),
        q((queries + tile::rows) * row),
        dout(q),
        dq(q),
        lse(queries + tile::rows),
        both(lse),
        sight(static_cast<std::size_t>(queries)) {}

  // Whether one of the queries first … end − 1 sees one of the 64 keys from `key` on.
  bool meet(std::int64_t first, std::int64_t end, std::int64_t key) const {
    return sight[static_cast<std::size_t>(end - 1)].last > key && sight[static_cast<std::size_t>(first)].first < key + side;
  }

  std::int64_t queries, key_count, width, row;
  KeyTiles keys;
  Floats turned_values;  // tiles of Vᵀ, [width, 64]
  Floats q, dout, dq;
  Floats lse, both;                        // one number per query; `both` holds Σ do·o
  std::vector<Sight> sight;                // one per query
  Floats p{side * side}, ds{side * side};  // one tile, [query, key]
};

// Adds the contributions of one tile to dQ and `sums`: `rows` queries from first_query, 64 keys from first_key. `dropped[i]`
// is the dropout index of query i for key 0.
void tile_backward(Gradients& g, std::int64_t first_query, std::int64_t rows, std::int64_t first_key, const Drops& drops,
                   const std::uint64_t* dropped, const KeyGradients& sums);

float dot(const float* a, const float* b, std::int64_t row);

// T is the type of the inputs, S that of the results.
template <class T, class S, class KeySums>
void group_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, std::int64_t sample,
                    std::int64_t group, const Drops& drops, Gradients& g, const Tensor& dqkv, KeySums& sums) {
  const AttentionShape& shape = in.shape;
  const Tokens& tokens = in.dropout.tokens;
  const std::int64_t width = g.width, start = sample * tokens.tokens, outs = shape.heads() * width;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  const T* const qkv = in.qkv.values<T>().data();
  S* const to = dqkv.values<S>().data();
  g.keys.load(in.keys.tensor.values<T>().data() + first_key(in.keys, sample, group), in.keys.row, g.key_count, width);
  transpose_tiles(g.keys.values.data(), g.key_count, g.row, g.turned_values.data());
  std::vector<std::uint64_t> dropped(static_cast<std::size_t>(g.queries));
  for (std::int64_t t = 0; t < g.queries; ++t) g.sight[static_cast<std::size_t>(t)] = sight_of(start + t, tokens, in.keys);
  for (std::int64_t query = 0; query < shape.queries; ++query) {
    const std::int64_t head = group * shape.queries + query, place = (start * shape.heads() + head) * width;
    widen(qkv + first_query(shape, start, head), shape.columns(), g.queries, width, scale, g.q.data());
    widen(dout.values<T>().data() + place, outs, g.queries, width, 1, g.dout.data());
    // g.dq first holds `out`, for the sums Σ do·o. Then it is cleared for dQ.
    widen(out.values<S>().data() + place, outs, g.queries, width, 1, g.dq.data());
    for (std::int64_t t = 0; t < g.queries; ++t) {
      g.both.data()[t] = dot(g.dout.data() + t * g.row, g.dq.data() + t * g.row, g.row);
      g.lse.data()[t] = lse.values<float>()[static_cast<std::size_t>((start + t) * shape.heads() + head)];
      if (drops.any())
        dropped[static_cast<std::size_t>(t)] =
            drops.index(start + t, head) + static_cast<std::uint64_t>(in.keys.first_token);
    }
    S* const queries = to + first_query(shape, start, head);
    if (in.continues)
      widen(queries, shape.columns(), g.queries, width, 1 / scale, g.dq.data());
    else
      std::fill_n(g.dq.data(), g.queries * g.row, 0.0f);
    for (std::int64_t key = 0; key < g.key_count; key += side)
      for (std::int64_t leaf = 0; leaf < g.queries; leaf += sums.leaf()) {
        const std::int64_t end = std::min(leaf + sums.leaf(), g.queries);
        if (!g.meet(leaf, end, key)) continue;
        const KeyGradients here = sums.begin(key);
        for (std::int64_t first = leaf; first < end; first += side)
          if (const std::int64_t rows = std::min(side, end - first); g.meet(first, first + rows, key))
            tile_backward(g, first, rows, key, drops, dropped.data(), here);
        sums.end(key);
      }
    narrow(g.dq.data(), scale, g.queries, width, queries, shape.columns());
  }
}

}  // namespace chorale::attention
