// The streams of the emulated device. Where this is cheap to emulate, a task runs as late as it could on a GPU:
//
//   a stream             [ kernel ][ messages ][ event ]   runs only in advance(); a task that is not yet complete
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
void advance();  // one sweep: in each stream, runs tasks until one is not complete
// Stores the error that the next cudaGetLastError() returns, and returns the error. Later calls that succeed do not clear
// it.
cudaError_t remembered(cudaError_t error);
void count_wait();  // counts one wait of the host; `chorale_emulated_waits` returns the count

}  // namespace emulation

struct EmulatedStream {
  std::deque<emulation::Task> tasks;
};
