// The table of a device's kernels, which the plugin exports. This file also implements the table's functions for copies,
// clears, events and streams, because they only call the CUDA runtime.
#include "src/math/cuda/kernels.cuh"

#include "src/math/cuda/device.cuh"
#include "src/memory/event_query.cuh"

namespace chorale {
namespace cuda {
namespace {

void copy(void* to, const void* from, std::int64_t bytes, const Queue& queue) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_of(queue)));
}

void clear(void* place, std::int64_t bytes, const Queue& queue) {
  check(cudaMemsetAsync(place, 0, static_cast<std::size_t>(bytes), stream_of(queue)));
}

void wait(const Queue& queue) { check(cudaStreamSynchronize(stream_of(queue))); }

std::shared_ptr<void> mark(const Queue& queue) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault));
  std::shared_ptr<void> made(event, [](void* passed) { cudaEventDestroy(static_cast<cudaEvent_t>(passed)); });
  check(cudaEventRecord(event, stream_of(queue)));
  return made;
}

double seconds_between(void* mark, void* later) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(mark), static_cast<cudaEvent_t>(later)));
  return static_cast<double>(milliseconds) / 1000;
}

void move_mark(void* mark, const Queue& queue) { check(cudaEventRecord(static_cast<cudaEvent_t>(mark), stream_of(queue))); }

bool passed(void* mark) {
  return chorale::event_completed(static_cast<cudaEvent_t>(mark), [](cudaError_t state) { check(state); });
}

std::shared_ptr<void> stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return {made, [](void* gone) { cudaStreamDestroy(static_cast<cudaStream_t>(gone)); }};
}

}  // namespace
}  // namespace cuda

extern "C" const DeviceKernels* chorale_cuda_kernels() {
#define CHORALE_ENTRY(name) .name = cuda::name,
  static const DeviceKernels kernels{
      // clang-format off
      .copy = cuda::copy,
      .clear = cuda::clear,
      .wait = cuda::wait,
      .mark = cuda::mark,
      .seconds_between = cuda::seconds_between,
      .move_mark = cuda::move_mark,
      .passed = cuda::passed,
      .stream = cuda::stream,
      CHORALE_HOST_KERNELS(CHORALE_ENTRY)
      CHORALE_OWN_KERNELS(CHORALE_ENTRY)
      // clang-format on
  };
#undef CHORALE_ENTRY
  return &kernels;
}

}  // namespace chorale
