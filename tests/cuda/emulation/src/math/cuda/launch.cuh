// Emulates kernel launches. The host calls the kernel for every thread of every block, in fibers. On the include path, this
// file precedes src/math/cuda/launch.cuh.
#pragma once
#include <cuda_runtime.h>

#include "src/math/cuda/device.cuh"
#include "tests/cuda/emulation/block.hpp"
#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace chorale::cuda {

struct Grid {
  std::int64_t blocks;
  int threads;
  std::int64_t shared_bytes = 0;
};

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, const Queue& queue, Arguments... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "kernel arguments exceed 4 KiB, the limit on every GPU");
  if (grid.blocks == 0) return;
  emulation::put(stream_of(queue), [=] {
    const emulation::Open open;
    emulation::run_grid(grid.blocks, static_cast<unsigned>(grid.threads), static_cast<std::size_t>(grid.shared_bytes),
                        [&] { kernel(static_cast<Parameters>(arguments)...); });
    return true;
  });
  check(cudaGetLastError());
}

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(emulation::shared_memory());
}

}  // namespace chorale::cuda
