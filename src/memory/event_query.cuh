// Queries whether a device has passed an event; does not wait.
#pragma once
#include <cuda_runtime.h>

namespace chorale {

// `check` throws on errors. "Not ready" is not an error, but CUDA records it as the last error.
// It is cleared here; otherwise the check after the next launch would report it.
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
