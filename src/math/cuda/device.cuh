// The host side of every kernel launch. These functions turn CUDA errors into exceptions, find the stream of a queue, check
// that tensors are on the current device, and allocate workspaces.
#pragma once
#include <cuda_runtime.h>

#include <source_location>

#include "src/base/error.hpp"
#include "src/math/kernel.hpp"

namespace chorale::cuda {

inline void check(cudaError_t error, std::source_location where = std::source_location::current()) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears CUDA's error state, because this function reports the error
  throw Error(Exit::runtime, "a CUDA call failed", cudaGetErrorString(error),
              "the error may come from an earlier kernel: set CUDA_LAUNCH_BLOCKING=1 to find it", where);
}

inline cudaStream_t stream_of(const Queue& queue) { return static_cast<cudaStream_t>(queue.stream); }

// Kernel arguments must be on the current device, which is the device of the queue's stream.
inline void require_here(Device device, std::source_location where) {
  int current = 0;
  check(cudaGetDevice(&current), where);
  const Device here{Device::Kind::cuda, current};
  if (!(device == here)) misuse("a kernel on " + name_of(here) + " was given a tensor on " + name_of(device), where);
}

// Returns the elements of a tensor on the device, or nullptr if an optional tensor is absent.
template <class T>
T* data(const Tensor& tensor, std::source_location where = std::source_location::current()) {
  require_here(tensor.device(), where);
  return static_cast<T*>(tensor.slice().data);
}
template <class T>
T* data(const Tensor* tensor, std::source_location where = std::source_location::current()) {
  return tensor ? data<T>(*tensor, where) : nullptr;
}
template <class T>
T* data(const Slice& slice, std::source_location where = std::source_location::current()) {
  require_here(slice.device, where);
  return static_cast<T*>(slice.data);
}

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A kernel's workspace, allocated in stream order. Later work in the stream can reuse the memory.
template <class T>
class Scratch {
 public:
  Scratch(std::int64_t count, const Queue& queue) : stream_(stream_of(queue)) {
    void* place = nullptr;
    check(cudaMallocAsync(&place, static_cast<std::size_t>(count) * sizeof(T), stream_));
    values_ = static_cast<T*>(place);
  }
  ~Scratch() { cudaFreeAsync(values_, stream_); }
  Scratch(const Scratch&) = delete;
  T* get() const { return values_; }

 private:
  cudaStream_t stream_;
  T* values_;
};

}  // namespace chorale::cuda
