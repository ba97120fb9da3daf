// Streams of an emulated device. The default stream's work is done before the call returns, as if everybody waited for it; that of others is
// gone on with only when somebody polls, which is as late as a GPU could be.
//
//   stream   [ kernel ][ messages ][ event ]      a task that cannot end yet holds up those behind it, and no other stream's
#pragma once
#include <cuda_runtime.h>

#include <deque>
#include <functional>

namespace emulation {

using Task = std::function<bool()>;  // true: it is over; else it is asked again

void put(cudaStream_t stream, Task task);
void advance();  // all streams, as far as they go

}  // namespace emulation

struct EmulatedStream {
  std::deque<emulation::Task> tasks;
};
