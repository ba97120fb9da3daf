// As much of CUDA's runtime as the backend nccl uses, on an emulated machine.
#pragma once
#include <cstring>

#include "tests/nccl/machine.hpp"

enum cudaError_t { cudaSuccess, cudaErrorNotReady };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking, cudaEventDisableTiming };
using cudaStream_t = chorale::test::EmulatedStream*;
using cudaEvent_t = chorale::test::EmulatedEvent*;
inline const cudaStream_t cudaStreamLegacy = nullptr;  // tests put nothing there, so it is always idle

inline const char* cudaGetErrorString(cudaError_t) { return "an emulated error"; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new chorale::test::EmulatedStream;
  chorale::test::Machine::here().streams.push_back(*stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(chorale::test::Machine::here().streams, stream);
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new chorale::test::EmulatedEvent;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->passed = std::make_shared<bool>(stream == cudaStreamLegacy);
  if (stream) stream->tasks.push_back([passed = event->passed] { return *passed = true; });
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream->tasks.push_back([passed = event->passed] { return *passed; });
  return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  chorale::test::Machine::here().advance();
  return *event->passed ? cudaSuccess : cudaErrorNotReady;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  auto& machine = chorale::test::Machine::here();
  stream->tasks.push_back([to = machine.reached(to, bytes), from = machine.reached(from, bytes), bytes] {
    if (bytes > 0) std::memmove(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}
