// Whether a device is past an event; does not wait.
#pragma once
#include <cuda_runtime.h>

namespace chorale {

// `check` throws for what is an error. That the event is yet to come is none, but CUDA remembers it as the last one: it is taken away here, or
// the next launch would be blamed.
template <class Check>
bool passed(cudaEvent_t event, Check check) {
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady)
    cudaGetLastError();
  else
    check(state);
  return state == cudaSuccess;
}

}  // namespace chorale
