// Kernel launches, and the dynamic shared memory of a block. The tests use a different version of this file, which runs the
// blocks in a loop on the host (tests/cuda/emulation).
#pragma once
#include <cuda_runtime.h>

#include "src/math/cuda/device.cuh"

namespace chorale::cuda {

struct Grid {
  std::int64_t blocks;
  int threads;
  std::int64_t shared_bytes = 0;  // dynamic shared memory
};

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Queue& queue, Arguments... arguments) {
  if (grid.blocks == 0) return;
  constexpr std::int64_t without_asking = 48 << 10;
  if (grid.shared_bytes > without_asking)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes)));
  kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads),
           static_cast<std::size_t>(grid.shared_bytes), stream_of(queue)>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError());
}

// Returns the dynamic shared memory, aligned to 128 bytes. The launch sets its size.
template <class T>
__device__ T* shared_memory() {
  extern __shared__ __align__(128) unsigned char dynamic[];
  return reinterpret_cast<T*>(dynamic);
}

}  // namespace chorale::cuda
