// Queries without waiting whether a CUDA event has completed.
#pragma once
#include <cuda_runtime.h>

namespace chorale {

// `check` throws if its argument is an error. cudaErrorNotReady is not a failure, but CUDA records it as the last error.
// event_completed() clears the last error, because otherwise the check after the next kernel launch would report it.
template <class Check>
bool event_completed(cudaEvent_t event, Check check) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady)
    cudaGetLastError();
  else
    check(state);
  return state == cudaSuccess;
}

}  // namespace chorale
