// A team (src/math/router.hpp) that consists of one warp and processes one token. The values of the token are in shared
// memory.
#pragma once
#include <algorithm>

#include "src/math/cuda/reduce_block.cuh"
#include "src/math/router.hpp"

namespace chorale::cuda {

struct Warp {
  static constexpr std::int64_t size = warp;
  __device__ std::int64_t lane() const { return threadIdx.x % warp; }
  __device__ void sync() const { __syncwarp(); }
};

__device__ inline std::int64_t token_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / warp) + threadIdx.x / warp;
}

template <class T>
__device__ routing::Room<T> room_of_warp(const routing::TokenRule& rule) {
  return {shared_memory<T>() + threadIdx.x / warp * routing::Room<T>::count(rule), rule};
}

// Returns a grid with four tokens per block, or fewer if shared memory cannot hold the values of four tokens.
template <class T>
Grid grid_of_tokens(const routing::TokenRule& rule, std::int64_t tokens) {
  constexpr std::int64_t most_shared_bytes = 227 << 10, most_warps = 4;
  const auto bytes = routing::Room<T>::count(rule) * static_cast<std::int64_t>(sizeof(T));
  require(bytes <= most_shared_bytes, "a router of {} experts needs more than a block's {} bytes of shared memory",
          rule.experts, most_shared_bytes);
  const std::int64_t warps = std::clamp<std::int64_t>(most_shared_bytes / bytes, 1, most_warps);
  return {quotient_up(tokens, warps), static_cast<int>(warps) * warp, warps * bytes};
}

}  // namespace chorale::cuda
