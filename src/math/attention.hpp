// Causal attention that never stores the score matrix (Dao et al. 2022). Tiles of scores stay in the cache, and the softmax
// is rescaled after each tile. The backward pass recomputes the tiles from one value per row and head. This value, `lse`, is
// the logarithm of the row's sum of exponentials.
//
//   qkv [rows, groups, queries + 2, width]   each group: its query heads, then the key and value that they share
//   out [rows, groups, queries, width]       lse [rows, groups·queries] in f32 (f64 if qkv is f64)
//
// The queries are the rows of qkv. The keys and values are the rows of any tensor: of qkv itself, of a cache, or of a tensor
// gathered from other ranks. A query attends to the keys of its own document, up to its own token.
//
// A call can process only some of the keys. Its results `out` and `lse` are then partial. A later call with other keys
// continues from these results:
//
//   keys 0–99 ──▶ (out, lse) ──▶ keys 100–199, continued ──▶ (out, lse) over keys 0–199
//
// The forward pass takes 4·pairs·heads·width FLOPs for its two products, where `pairs` counts the pairs of a query and a key
// that the query attends to. The backward pass takes 2.5 times as many FLOPs. Tile sizes are fixed and sums run in ascending
// order, so a head's results depend bit for bit only on that head's inputs. In bf16, the results also depend on the
// processor's multiply instructions (bf16/engines.hpp). In f16, and in bf16 without bf16 multiply instructions, elements are
// widened to f32 and multiplied in f32.
#pragma once
#include "src/math/dropout.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct AttentionShape {
  std::int64_t groups, queries, width;  // a group has `queries` query heads, which share one key and value; multi-head
                                        // attention has one query head per group
  std::int64_t first_head = 0;          // index of this rank's first head among all heads, for the random numbers of dropout
  std::int64_t all_heads = 1;           // number of heads on all ranks together
  constexpr std::int64_t heads() const { return groups * queries; }
  constexpr std::int64_t columns() const { return groups * (queries + 2) * width; }
  constexpr std::int64_t key_columns() const { return groups * 2 * width; }
};

// The keys and values of `count` consecutive tokens of each sample, or the gradients of these keys and values. In memory,
// each value directly follows its key.
struct KeyRows {
  Tensor tensor;
  std::int64_t count = 0, first_token = 0;      // the `count` tokens of each sequence that start at `first_token`
  std::int64_t first_row = 0, sample_rows = 0;  // `first_row` is the row of the first token in sample 0; `sample_rows` is
                                                // the number of rows per sample
  std::int64_t offset = 0, row = 0, group = 0;  // in elements: the offset of the first key in a row, the stride of rows, and
                                                // the stride of groups

  KeyRows in(const Tensor& other) const {  // returns the same rows of another tensor
    KeyRows rows = *this;
    rows.tensor = other;
    return rows;
  }
  // Whether the rows of all samples are inside the tensor.
  bool fits(std::int64_t samples) const {
    return count >= 0 && first_row >= 0 && (samples == 1 || count <= sample_rows) &&
           (first_row + (samples - 1) * sample_rows + count) * row <= tensor.count();
  }
};
KeyRows keys_of_qkv(const Tensor& qkv, const AttentionShape& shape, std::int64_t tokens);  // the keys of complete sequences
// Returns the first `count` tokens of each sample in a tensor [samples, tokens, groups, 2, width].
KeyRows keys_alone(const Tensor& rows, const AttentionShape& shape, std::int64_t samples, std::int64_t count);

struct AttentionInput {
  Tensor qkv;  // the queries; its keys and values are used only if `keys` refers to them
  KeyRows keys;
  AttentionShape shape;
  // dropout.tokens maps rows of qkv to tokens. Dropout is applied to the attention weights (probabilities). The random
  // number of a weight has the index ((sample·all_heads + head)·sequence + q)·sequence + k, where q and k are the indices of
  // the query and the key in their sequence.
  Dropout dropout;
  // True: out, lse and the gradients hold partial results of earlier calls with other keys, and this call adds to these
  // results.
  bool continues = false;
  double pairs = 0;  // number of pairs of a query and a key that the query attends to, in all samples; plans count this work
};
// Returns the input for queries of complete sequences whose keys are in the same tensor.
AttentionInput whole_sequences(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout);

// `out` has the type of qkv, or f32, so that partial results can have a wider type than qkv.
void attention_forward(const AttentionInput& in, const Tensor& out, const Tensor& lse, const Queue& queue);

// Writes the gradients of queries to the query columns of dqkv, and the gradients of keys and values to `dkeys`. dqkv and
// `dkeys` have the type of `out`.
void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv, const KeyRows& dkeys, const Queue& queue);

// Calls f(Type<T>{}, Type<S>{}) for inputs of type T and results of type S, which is T or f32.
template <class F>
void visit_results(DType type, DType results, F&& f) {
  visit_floating(type, [&]<class T>(Type<T> of) {
    if (results == type) return f(of, of);
    if constexpr (sizeof(T) == 2) f(of, Type<float>{});
  });
}

}  // namespace chorale
