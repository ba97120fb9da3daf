// Streams of an emulated device. They run as late as a GPU's could, where that is cheap to emulate:
//
//   a stream             [ kernel ][ messages ][ event ]   progresses only when polled; a task that is not yet complete
//                                                          blocks the later ones
//   the default stream   completes before each call returns, except copies from pinned memory, which wait until the next
//                        call, so reusing pinned memory too early shows
//   the same, held       queues all tasks until it is released or waited for, as if a long kernel were running
//
// The emulation counts how often a real device would make the host wait.
#pragma once
#include <cuda_runtime.h>

#include <deque>
#include <functional>

namespace emulation {

using Task = std::function<bool()>;  // returns true when complete; otherwise it is called again

void put(cudaStream_t stream, Task task);
void advance();  // runs all streams as far as they go
// Sets the last error, which cudaGetLastError returns, also after the next launch.
cudaError_t remembered(cudaError_t error);
void count_wait();  // `chorale_emulated_waits` returns the count

}  // namespace emulation

struct EmulatedStream {
  std::deque<emulation::Task> tasks;
};
