// Streams of an emulated device, as late as a GPU could be where that is cheap to emulate:
//
//   a stream             [ kernel ][ messages ][ event ]   goes on only when somebody polls; a task that cannot end yet holds up those behind it
//   the default stream   is done before a call returns, but for copies from pinned memory, which wait until something else is asked:
//                        so pinned memory that is used again too early shows
//   the same, held       does nothing but queue up, until it is let go or waited for: as if a long kernel were ahead of all
//
// It counts how often a real device would make the host wait.
#pragma once
#include <cuda_runtime.h>

#include <deque>
#include <functional>

namespace emulation {

using Task = std::function<bool()>;  // true: it is over; else it is asked again

void put(cudaStream_t stream, Task task);
void advance();                             // all streams, as far as they go
cudaError_t remembered(cudaError_t error);  // as the last one: cudaGetLastError tells it, after the next launch too
void count_wait();                          // `chorale_emulated_waits` tells how many there were

}  // namespace emulation

struct EmulatedStream {
  std::deque<emulation::Task> tasks;
};
