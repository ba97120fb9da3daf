// The streams of the emulated device. If a delay is cheap to emulate, a task runs as late as it could on a GPU:
//
//   a stream             [ kernel ][ messages ][ event ]   tasks run only in advance(); a task that is not yet complete
//                                                          blocks all later tasks
//   the default stream   tasks complete before each call returns, except copies from pinned memory: these run at the next
//                        call, so a reuse of pinned memory that is too early is detected
//     if it is held      tasks are queued until the stream is released or waited for, as if a long kernel were running
//
// The emulation counts the waits that the host would make on a real device.
#pragma once
#include <cuda_runtime.h>

#include <deque>
#include <functional>

namespace emulation {

using Task = std::function<bool()>;  // returns true when complete; otherwise the task is called again

void put(cudaStream_t stream, Task task);
void advance();  // in each stream, runs tasks until a task is not complete
// Stores the error that the next cudaGetLastError() returns, and returns the error. Later calls that succeed do not clear
// it.
cudaError_t remembered(cudaError_t error);
void count_wait();  // counts one wait of the host; `chorale_emulated_waits` returns the count

}  // namespace emulation

struct EmulatedStream {
  std::deque<emulation::Task> tasks;
};
