// Runs the threads of a block as fibers. Each thread has its own stack, and runs until it waits for the other threads of its
// warp or its block.
//
//   warp 0   lane 0 ──▶ waits   lane 1 ──▶ waits …  once all 32 lanes wait for the warp, lane 0 continues
//            …                                      until all lanes have ended or wait for the block
//   warp 1   runs next, in the same way
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime.h>

namespace emulation {

inline constexpr std::size_t most_shared_bytes = 227 << 10;

// Runs kernel() for every thread of every block. Throws if a GPU would refuse the launch.
void run_grid(std::int64_t blocks, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel);
std::byte* shared_memory();  // shared memory of the running block; all bytes are 0xff (NaN) when the block starts

// Asynchronous copies of this thread into shared memory. A null `from` writes zeros. In every second block, the bytes are
// copied at wait_for_copies(). In all other blocks, the bytes are copied immediately. Thus, a forgotten wait is detected,
// and a copy to memory that is still being read is also detected.
void copy_later(void* to, const void* from, std::size_t bytes);
void wait_for_copies();

void require_sixteen(const void* place);  // checks the alignment of a 16-byte access

}  // namespace emulation
