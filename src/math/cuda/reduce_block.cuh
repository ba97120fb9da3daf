// Reduces the values of all threads of a warp or block to one value. The order of the reduction depends only on the number
// of threads, so a sum is bit-identical in every run.
//
//   a warp    a butterfly: after five exchanges, all 32 lanes have the result; after fewer, each group of lanes has its own
//   a block   each warp writes its result to shared memory, and every thread reduces these results in the same order
#pragma once
#include "src/math/cuda/launch.cuh"

namespace chorale::cuda {

inline constexpr int warp = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

struct Plus {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a + b;
  }
};
struct Greater {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return b > a ? b : a;
  }
};

template <int neighbors = warp, class V, class Op>
__device__ V over_warp(V value, Op op) {
#pragma unroll
  for (int bits = neighbors / 2; bits > 0; bits /= 2) value = op(value, __shfl_xor_sync(whole_warp, value, bits));
  return value;
}

template <class V, class Op>
__device__ V over_block(V value, Op op) {
  __shared__ V of_warps[warp];
  value = over_warp(value, op);
  __syncthreads();  // waits for threads that still read the results of an earlier call
  if (threadIdx.x % warp == 0) of_warps[threadIdx.x / warp] = value;
  __syncthreads();
  V all = of_warps[0];
  for (unsigned w = 1; w < blockDim.x / warp; ++w) all = op(all, of_warps[w]);
  return all;
}

}  // namespace chorale::cuda
