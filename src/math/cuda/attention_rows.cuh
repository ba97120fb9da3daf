// Code shared by the kernels without tensor cores, attention.cu and attention_gradient.cu. One warp processes each row, and
// the lanes of the warp loop over keys or queries.
#pragma once
#include "src/math/cuda/attention.cuh"
#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {

constexpr int warps = 4, threads = warps * warp;  // one row per warp
constexpr int lanes = 16;                         // accumulators per sum, as on the host

__device__ inline std::int64_t row_of_warp() { return static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / warp; }
__device__ inline int lane_of_thread() { return threadIdx.x % warp; }

// Returns this warp's part of shared memory, which has space for `count` vectors.
template <class W>
__device__ W* own_vectors(int count, std::int64_t width) {
  return shared_memory<W>() + threadIdx.x / warp * count * width;
}

// a·(scale·b)
template <class W, class T>
__device__ W dot(const W* a, const T* b, W scale, std::int64_t width) {
  W sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum = fused(a[i], widened(b[i]) * scale, sum);
  return sum;
}

// sum = sum·shrink + Σ over lanes l < count of weight(l)·scale·vectors[first + l]
template <class W, class T>
__device__ void gather_weighted(W* sum, W shrink, W weight, const HeadVectors<const T>& vectors, W scale, std::int64_t first,
                                std::int64_t last, std::int64_t width) {
  const int count = last - first < warp ? static_cast<int>(last - first) : warp;
  for (std::int64_t from = 0; from < width; from += warp) {
    const std::int64_t i = from + lane_of_thread();
    W value = i < width ? sum[i] * shrink : W(0);
    for (int l = 0; l < count; ++l) {
      const W of_lane = __shfl_sync(whole_warp, weight, l);
      if (i < width) value = fused(of_lane, widened(vectors[first + l][i]) * scale, value);
    }
    if (i < width) sum[i] = value;
  }
}

// Returns a grid with one warp per row, and with shared memory for `vectors` vectors per warp.
template <class T>
Grid grid_of(std::int64_t rows, int vectors, const AttentionShape& shape) {
  return {quotient_up(rows, warps), threads,
          static_cast<std::int64_t>(warps * vectors * shape.width * sizeof(Statistic<T>))};
}

// Whether the input consists of complete sequences of one document each, and the results have the same type as the inputs.
// The tensor-core kernels require both properties.
inline bool whole(const AttentionInput& in, const Tensor& results) {
  const Tokens& tokens = in.dropout.tokens;
  return in.keys.tensor.storage() == in.qkv.storage() && !tokens.places && !tokens.positions && !in.continues &&
         results.dtype() == in.qkv.dtype();
}

}  // namespace chorale::cuda
