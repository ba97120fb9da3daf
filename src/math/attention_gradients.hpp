// The backward pass of attention for one group, tile by tile. P = exp(Q·Kᵀ − lse) is recomputed. Here f denotes the dropout
// factors, and D is Σ do·o per row:
//
//   dS = P ∘ (f ∘ (dO·Vᵀ) − D)        dQ += dS·K        dK += dSᵀ·Q        dV += (f ∘ P)ᵀ·dO
//
// The backward pass has five matrix products; the forward pass has two. Keys, values and their gradients stay in memory for
// all query heads of the group. Q is scaled by 1/√width when it is loaded, so dK needs no scaling. dQ is scaled when it is
// stored.
//
// dQ is one chain of additions over the keys. dK and dV are sums over queries and query heads. Ranks can split the queries
// and the heads. Fast numerics computes each of these sums as one chain. Exact numerics computes one chain per leaf of
// consecutive queries, and adds the results of the chains as integers (exact/attention.cpp). The template parameter
// `KeySums` selects one chain or one chain per leaf. `KeySums` has these functions:
//
//   leaf()                            the length of a leaf
//   begin(key)                        returns {dk, dv}: this leaf's accumulators for the 64 keys that start at `key`
//   end(key)                          called when the chains in these accumulators are complete
#pragma once
#include "src/base/round_up.hpp"
#include "src/math/attention_tiles.hpp"

namespace chorale::attention {

struct KeyGradients {
  float *dk, *dv;  // the width of each row is padded (GroupRows::row)
};

float dot(const float* a, const float* b, std::int64_t row);

// The sizes of one group, and the values that are kept for each query of a head.
struct GroupRows {
  GroupRows(std::int64_t queries, std::int64_t key_count, std::int64_t width)
      : queries(queries),
        key_count(key_count),
        width(width),
        row(round_up(width, lanes)),
        scale(1 / std::sqrt(static_cast<float>(width))),
        // A block of 8 queries can begin at any row, so the last block can extend past the end.
        lse(round_up(queries + tile::rows, side)),
        both(lse),
        sight(static_cast<std::size_t>(queries)),
        dropped(static_cast<std::size_t>(round_up(queries, side))) {}

  // Whether one of the queries in [`first`, `end`) attends to one of the 64 keys that start at `key`.
  bool meet(std::int64_t first, std::int64_t end, std::int64_t key) const {
    return sight[static_cast<std::size_t>(end - 1)].last > key && sight[static_cast<std::size_t>(first)].first < key + side;
  }

  std::int64_t queries, key_count, width, row;
  float scale;                         // scale of scores
  Floats lse, both;                    // `both` holds D = Σ do·o
  std::vector<Sight> sight;            // the visible keys of each query; within a tile of queries, both `first` and `last`
                                       // ascend
  std::vector<std::uint64_t> dropped;  // dropout index of each query's probability for key 0
};

// The matrices of one group in f32, [tokens, width] with padding unless noted otherwise. Q is scaled.
struct Gradients : GroupRows {
  Gradients(std::int64_t queries, std::int64_t key_count, std::int64_t width)
      : GroupRows(queries, key_count, width),
        keys(key_count, width),
        turned_values(round_up(key_count, side) * row),
        q((queries + tile::rows) * row),
        dout(q),
        dq(q) {}

  template <class T>
  void load_keys(const T* key, std::int64_t stride) {
    keys.load(key, stride, key_count, width);
    transpose_tiles(keys.values.data(), key_count, row, turned_values.data());
  }
  template <class T, class S>
  void load_head(const T* query, std::int64_t stride, const T* gradient, const S* out, std::int64_t outs) {
    widen(query, stride, queries, width, scale, q.data());
    widen(gradient, outs, queries, width, 1, dout.data());
    widen(out, outs, queries, width, 1, dq.data());  // dq holds `out` until it is cleared for dQ
    for (std::int64_t t = 0; t < queries; ++t) both.data()[t] = dot(dout.data() + t * row, dq.data() + t * row, row);
  }
  void clear_dq() { std::fill_n(dq.data(), queries * row, 0.0f); }
  template <class S>
  void load_dq(const S* from, std::int64_t stride) {
    widen(from, stride, queries, width, 1 / scale, dq.data());
  }
  template <class S>
  void store_dq(S* to, std::int64_t stride) {
    narrow(dq.data(), scale, queries, width, to, stride);
  }

  KeyTiles keys;
  Floats turned_values;  // tiles of Vᵀ, [width, 64]
  Floats q, dout, dq;
  Floats p{side * side}, ds{side * side};  // one tile, [query, key]
};

// Adds the contributions of one tile to dQ and `sums`. The tile has `rows` queries that start at first_query and 64 keys
// that start at first_key.
void tile_backward(Gradients& g, std::int64_t first_query, std::int64_t rows, std::int64_t first_key, const Drops& drops,
                   const KeyGradients& sums);

// T is the type of the inputs, and S is the type of the results. Group: the class Gradients, or its counterpart for bf16
// products.
template <class T, class S, class Group, class KeySums>
void group_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, std::int64_t sample,
                    std::int64_t group, const Drops& drops, Group& g, const Tensor& dqkv, KeySums& sums) {
  const AttentionShape& shape = in.shape;
  const Tokens& tokens = in.dropout.tokens;
  const std::int64_t width = g.width, start = sample * tokens.tokens, outs = shape.heads() * width;
  const T* const qkv = in.qkv.values<T>().data();
  S* const to = dqkv.values<S>().data();
  const float* const logs = lse.values<float>().data();
  g.load_keys(in.keys.tensor.values<T>().data() + first_key(in.keys, sample, group), in.keys.row);
  for (std::int64_t t = 0; t < g.queries; ++t) g.sight[static_cast<std::size_t>(t)] = sight_of(start + t, tokens, in.keys);
  for (std::int64_t query = 0; query < shape.queries; ++query) {
    const std::int64_t head = group * shape.queries + query, place = (start * shape.heads() + head) * width;
    g.load_head(qkv + first_query(shape, start, head), shape.columns(), dout.values<T>().data() + place,
                out.values<S>().data() + place, outs);
    for (std::int64_t t = 0; t < g.queries; ++t) {
      g.lse.data()[t] = logs[(start + t) * shape.heads() + head];
      if (drops.any())
        g.dropped[static_cast<std::size_t>(t)] =
            drops.index(start + t, head) + static_cast<std::uint64_t>(in.keys.first_token);
    }
    S* const queries = to + first_query(shape, start, head);
    if (in.continues)
      g.load_dq(queries, shape.columns());
    else
      g.clear_dq();
    for (std::int64_t key = 0; key < g.key_count; key += side)
      for (std::int64_t leaf = 0; leaf < g.queries; leaf += sums.leaf()) {
        const std::int64_t end = std::min(leaf + sums.leaf(), g.queries);
        if (!g.meet(leaf, end, key)) continue;
        const KeyGradients here = sums.begin(key);
        for (std::int64_t first = leaf; first < end; first += side)
          if (const std::int64_t rows = std::min(side, end - first); g.meet(first, first + rows, key))
            tile_backward(g, first, rows, key, drops, here);
        sums.end(key);
      }
    g.store_dq(queries, shape.columns());
  }
}

// Computes each sum as one chain over all queries and query heads of the group.
struct FloatSums {
  FloatSums(std::int64_t queries, std::int64_t keys, std::int64_t row)
      : length(queries), row(row), dk(round_up(keys, side) * row), dv(round_up(keys, side) * row) {}
  std::int64_t leaf() const { return length; }
  KeyGradients begin(std::int64_t key) { return {dk.data() + key * row, dv.data() + key * row}; }
  void end(std::int64_t) {}
  std::int64_t length, row;
  Floats dk, dv;
};

// Computes all gradients in f32. make_group() allocates the matrices of a group; each thread calls it once.
template <class T, class S, class Make>
void backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, const Tensor& dqkv,
              const KeyRows& dkeys, const Queue& queue, Make&& make_group) {
  const std::int64_t queries = in.dropout.tokens.tokens, keys = in.keys.count, width = in.shape.width;
  const std::int64_t row = round_up(width, lanes);
  const Drops drops(in.dropout, in.shape);
  S* const to = dkeys.tensor.values<S>().data();
  for_each_group(
      in, queue, [&] { return std::pair(make_group(), FloatSums(queries, keys, row)); },
      [&](std::int64_t sample, std::int64_t group, auto& state) {
        auto& [gradients, sums] = state;
        S* const key = to + first_key(dkeys, sample, group);
        float *dk = sums.dk.data(), *dv = sums.dv.data();
        if (in.continues) {
          widen(key, dkeys.row, keys, width, 1, dk);
          widen(key + width, dkeys.row, keys, width, 1, dv);
        } else {
          std::fill_n(dk, keys * row, 0.0f);
          std::fill_n(dv, keys * row, 0.0f);
        }
        group_backward<T, S>(in, dout, out, lse, sample, group, drops, gradients, dqkv, sums);
        narrow(dk, 1, keys, width, key, dkeys.row);
        narrow(dv, 1, keys, width, key + width, dkeys.row);
      });
}

}  // namespace chorale::attention
