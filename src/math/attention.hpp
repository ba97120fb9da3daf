// Causal attention that never stores the score matrix (Dao et al. 2022). Tiles of scores stay in the cache, and softmax
// is rescaled as tiles arrive. The backward pass recomputes the tiles from one number per row: the log of its sum of
// exponentials (lse).
//
//   qkv [rows, groups, queries + 2, width]   each group: its query heads, then their shared key and value
//   out [rows, groups, queries, width]       lse [rows, groups·queries] in f32 (f64 beside f64)
//
// rows = samples × tokens, whole sequences. FLOPs: 2·rows·tokens·heads·width forward (two products, each over half the
// square); backward 2.5 times that. Tile sizes are fixed and sums run in ascending order, so a head's bits depend only on
// its own inputs.
#pragma once
#include "src/math/dropout.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct AttentionShape {
  std::int64_t groups, queries, width;  // heads per key and value; 1 is plain multi-head attention
  std::int64_t first_head = 0;          // index of this rank's first head among all heads: keys the dropout of probabilities
  std::int64_t all_heads = 1;
  constexpr std::int64_t heads() const { return groups * queries; }
  constexpr std::int64_t columns() const { return groups * (queries + 2) * width; }
};

// dropout.tokens maps rows to tokens. Dropout acts on attention weights; the random number of a weight is keyed by
// ((sample·all_heads + head)·sequence + query)·sequence + key.
void attention_forward(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out,
                       const Tensor& lse, const Queue& queue);
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                        const AttentionShape& shape, const Dropout& dropout, const Tensor& dqkv, const Queue& queue);

// Generation: qkv holds `tokens` new tokens of each sample. Their keys and values are appended at `past` to the caches
// [samples, capacity, groups, width]. Each new token attends to all tokens up to itself.
void attention_cached(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Tensor& values,
                      std::int64_t past, const Tensor& out, const Queue& queue);

}  // namespace chorale
