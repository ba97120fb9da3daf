// Causal attention that never stores the score matrix (Dao et al. 2022). Tiles of scores stay in the cache, and softmax
// is rescaled as tiles arrive. The backward pass recomputes the tiles from one number per row and head: lse, the log of
// the sum of the row's exponentials.
//
//   qkv [rows, groups, queries + 2, width]   each group: its query heads, then their shared key and value
//   out [rows, groups, queries, width]       lse [rows, groups·queries] in f32 (f64 if qkv is f64)
//
// rows = samples × tokens, whole sequences. FLOPs of the forward pass: 2·rows·tokens·heads·width (two products, each over
// one triangle of the score matrix); the backward pass needs 2.5 times as many. Tile sizes are fixed and sums run in
// ascending order, so a head's bits depend only on that head's inputs.
#pragma once
#include "src/math/dropout.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct AttentionShape {
  std::int64_t groups, queries, width;  // each group: `queries` query heads share one key and value; 1: multi-head attention
  std::int64_t first_head = 0;          // index of this rank's first head among all heads, for the random numbers of dropout
  std::int64_t all_heads = 1;           // heads on all ranks together
  constexpr std::int64_t heads() const { return groups * queries; }
  constexpr std::int64_t columns() const { return groups * (queries + 2) * width; }
};

// dropout.tokens maps rows to tokens. Dropout acts on the attention weights (probabilities). The random number of such a
// weight has the index ((sample·all_heads + head)·sequence + query)·sequence + key.
void attention_forward(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out,
                       const Tensor& lse, const Queue& queue);
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                        const AttentionShape& shape, const Dropout& dropout, const Tensor& dqkv, const Queue& queue);

// Generation: qkv holds `tokens` new tokens of each sample. Their keys and values are stored in the caches
// [samples, capacity, groups, width] from position `past` on. Each new token attends to all tokens up to itself.
void attention_cached(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Tensor& values,
                      std::int64_t past, const Tensor& out, const Queue& queue);

}  // namespace chorale
