// Causal attention that never stores the score matrix (Dao et al. 2022): tiles of scores live in the cache, softmax is corrected as it
// goes along, and the backward pass makes the tiles again from one number a row, the log of its sum of exponentials.
//
//   qkv [rows, groups, queries + 2, width]   each group: its query heads, then the key and the value that they share
//   out [rows, groups, queries, width]       lse [rows, groups·queries] in f32 (f64 beside f64)
//
// rows = samples × tokens, whole sequences. FLOPs: 2·rows·tokens·heads·width forward (half of the square, twice), 2.5 times that backward.
// Tiles are fixed and sums run in ascending order, so a head's bits depend on nothing but its own numbers.
#pragma once
#include "src/math/dropout.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct AttentionShape {
  std::int64_t groups, queries, width;  // queries: heads that share one key and value; 1 is plain multi-head attention
  std::int64_t first_head = 0;          // of the groups here, among all heads: keys the dropout of probabilities
  std::int64_t all_heads = 1;
  constexpr std::int64_t heads() const { return groups * queries; }
  constexpr std::int64_t columns() const { return groups * (queries + 2) * width; }
};

// dropout.tokens says which tokens the rows are; its probability drops attention weights, keyed by
// ((sample·all_heads + head)·sequence + query)·sequence + key.
void attention_forward(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out,
                       const Tensor& lse, const Queue& queue);
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                        const AttentionShape& shape, const Dropout& dropout, const Tensor& dqkv, const Queue& queue);

// Generation: qkv holds `tokens` new tokens of each sample, whose keys and values are appended to the caches
// [samples, capacity, groups, width] at `past`; each new token attends to everything up to itself.
void attention_cached(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Tensor& values,
                      std::int64_t past, const Tensor& out, const Queue& queue);

}  // namespace chorale
