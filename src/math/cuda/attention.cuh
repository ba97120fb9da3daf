// The memory layout of attention's vectors. Attention has two implementations. attention.cu and attention_gradient.cu use
// one warp per row, for any width and type. attention_tiles.cu and attention_gradient_tiles.cu use tiles on tensor cores,
// for 16-bit heads of width 64 or 128.
#pragma once
#include "src/math/attention.hpp"
#include "src/math/cuda/device.cuh"
#include "src/math/cuda/philox.cuh"

namespace chorale::cuda {

// The vectors of one head. The vectors of consecutive tokens are `stride` elements apart.
template <class T>
struct HeadVectors {
  T* first;
  std::int64_t stride;
  __device__ T* operator[](std::int64_t token) const { return first + token * stride; }
};

// The vectors of one sample in qkv or in its gradient. `head` is the index among the heads of this rank.
template <class T>
struct SampleOfQkv {
  T* first;
  AttentionShape shape;
  __device__ HeadVectors<T> queries(std::int64_t head) const {
    return {first + (head + 2 * (head / shape.queries)) * shape.width, shape.columns()};
  }
  __device__ HeadVectors<T> keys(std::int64_t group) const {
    return {first + (group * (shape.queries + 2) + shape.queries) * shape.width, shape.columns()};
  }
  __device__ HeadVectors<T> values(std::int64_t group) const { return {keys(group).first + shape.width, shape.columns()}; }
};

// The location of a call's keys and values (KeyRows without the tensor).
struct KeyPlaces {
  std::int64_t count, first_token, first_row, sample_rows, offset, row, group;
  explicit KeyPlaces(const KeyRows& keys)
      : count(keys.count),
        first_token(keys.first_token),
        first_row(keys.first_row),
        sample_rows(keys.sample_rows),
        offset(keys.offset),
        row(keys.row),
        group(keys.group) {}

  template <class T>
  __device__ HeadVectors<T> keys(T* first, std::int64_t sample, std::int64_t number) const {
    return {first + (first_row + sample * sample_rows) * row + offset + number * group, row};
  }
  // A query attends to the keys in [first_seen(), last_seen()).
  __device__ std::int64_t first_seen(const Tokens& tokens, std::int64_t query) const {
    return clamped(tokens.start(query) - first_token);
  }
  __device__ std::int64_t last_seen(const Tokens& tokens, std::int64_t query) const {
    return clamped(tokens.place(query) + 1 - first_token);
  }

 private:
  __device__ std::int64_t clamped(std::int64_t key) const { return key < 0 ? 0 : key > count ? count : key; }
};

// Returns the vectors of one head in out or in its gradient, [tokens, heads, width].
template <class T>
__device__ HeadVectors<T> of_head(T* first, const AttentionShape& shape, std::int64_t head) {
  return {first + head * shape.width, shape.heads() * shape.width};
}

// Returns the index of the dropout random number for the attention weight of a query on key 0.
__device__ inline std::uint64_t place_of(const Dropout& dropout, const AttentionShape& shape, std::int64_t row,
                                         std::int64_t head) {
  const std::int64_t whole = dropout.tokens.sample(row) * shape.all_heads + shape.first_head + head;
  const std::int64_t n = dropout.tokens.sequence;
  return static_cast<std::uint64_t>((whole * n + dropout.tokens.place(row)) * n);
}

// Returns the dropout factors. The scale 1/(1 − p) is computed in type W, because f64 must not use the f32 value of
// Dropout::scale.
template <class W>
__device__ Factors<W> factors_of(const Dropout& dropout) {
  return {dropout, static_cast<W>(1 / (1 - dropout.probability))};
}

// The values of each row and head: lse, and `both`, which is D = Σ do·o in the backward pass.
template <class W>
struct Beside {
  const W *lse, *both;
};

// These functions run on tensor cores if the type and width allow it, and otherwise return false. The tile functions support
// only complete sequences of one document each, with the keys in qkv.
template <class T>
bool forward_in_tiles(const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout, T* out,
                      float* lse, const Queue& queue);
template <class T>
bool backward_in_tiles(const T* dout, const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout,
                       const Beside<float>& beside, T* dqkv, const Queue& queue);

}  // namespace chorale::cuda
