// One block of threads, run as fibers: each thread has a stack of its own and runs until it waits for its warp or its block.
//
//   warp 0   lane 0 ──▶ waits   lane 1 ──▶ waits …  all 32 wait for the warp: on with lane 0      until all wait for the block, or have ended
//   warp 1   …                                                                               then on with warp 0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime.h>

namespace emulation {

inline constexpr std::size_t most_shared_bytes = 227 << 10;

// Runs kernel() for every thread of every block. Throws what a GPU would refuse.
void run_grid(std::int64_t blocks, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel);
std::byte* shared_memory();  // of the block that runs, poisoned before it

// Copies of this thread into shared memory, of zeros where `from` is null: in one block when they are waited for, in the next at once, so that
// a wait that was forgotten shows, and a place that is still read.
void copy_later(void* to, const void* from, std::size_t bytes);
void wait_for_copies();

void require_sixteen(const void* place);  // of who reads or writes sixteen bytes at once

}  // namespace emulation
