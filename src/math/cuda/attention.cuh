// Where the vectors of attention lie, and the two ways to go about it: any width and type, a warp for a row (attention.cu); heads of 64 or 128
// in 16 bits, in tiles on tensor cores (attention_tiles.cu, attention_gradient_tiles.cu).
#pragma once
#include "src/math/attention.hpp"
#include "src/math/cuda/device.cuh"
#include "src/math/cuda/philox.cuh"

namespace chorale::cuda {

// Vectors of one head, a token apart.
template <class T>
struct Vectors {
  T* first;
  std::int64_t stride;
  __device__ T* operator[](std::int64_t token) const { return first + token * stride; }
};

// The vectors of a sample in qkv or its gradient; `head` counts all heads here.
template <class T>
struct SampleOfQkv {
  T* first;
  AttentionShape shape;
  __device__ Vectors<T> queries(std::int64_t head) const {
    return {first + (head + 2 * (head / shape.queries)) * shape.width, shape.columns()};
  }
  __device__ Vectors<T> keys(std::int64_t group) const {
    return {first + (group * (shape.queries + 2) + shape.queries) * shape.width, shape.columns()};
  }
  __device__ Vectors<T> values(std::int64_t group) const { return {keys(group).first + shape.width, shape.columns()}; }
};

// Of out and its gradient [tokens, heads, width].
template <class T>
__device__ Vectors<T> of_head(T* first, const AttentionShape& shape, std::int64_t head) {
  return {first + head * shape.width, shape.heads() * shape.width};
}

// The place of key 0 in the dropout of a query's weights.
__device__ inline std::uint64_t place_of(const Dropout& dropout, const AttentionShape& shape, std::int64_t row,
                                         std::int64_t head) {
  const std::int64_t whole = dropout.tokens.sample(row) * shape.all_heads + shape.first_head + head;
  const std::int64_t n = dropout.tokens.sequence;
  return static_cast<std::uint64_t>((whole * n + dropout.tokens.position(row)) * n);
}

// 1/(1 − p) as W: f64 does not take the f32 of Dropout::scale.
template <class W>
__device__ Factors<W> factors_of(const Dropout& dropout) {
  return {dropout, static_cast<W>(1 / (1 - dropout.probability))};
}

// D of the backward pass, Σ do·o for each row and head, beside lse.
template <class W>
struct Beside {
  const W *lse, *both;
};

// On tensor cores, where type and width allow it; false where they do not.
template <class T>
bool forward_in_tiles(const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout, T* out,
                      float* lse, const Queue& queue);
template <class T>
bool backward_in_tiles(const T* dout, const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout,
                       const Beside<float>& beside, T* dqkv, const Queue& queue);

}  // namespace chorale::cuda
