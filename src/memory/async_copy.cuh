// All CudaAsyncCopy objects of a device share two streams, one per direction. Copies in opposite directions overlap each
// other. Copies also overlap kernels. Each fetch records an event in the default stream, and the fetch stream waits for this
// event. CUDA completes the event after all work that was enqueued earlier in the default stream or a blocking stream. A
// fetch therefore copies the results of that work, and does not wait for work enqueued later. The send stream waits for
// other work only in send_in_order().
#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "src/memory/async_copy.hpp"
#include "src/memory/device_plugin.hpp"
#include "src/memory/event_query.cuh"

namespace chorale {

struct CopyStreams {
  CopyStreams() {
    check(cudaStreamCreateWithFlags(&fetching, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  CopyStreams(const CopyStreams&) = delete;
  ~CopyStreams() {
    if (fetching) cudaStreamDestroy(fetching);
    if (sending) cudaStreamDestroy(sending);
  }
  static void check(cudaError_t result, const char* call) {
    if (result != cudaSuccess)
      device_error(std::string(call) + ": " + cudaGetErrorString(result), "in a copy between host and device",
                   "the error may come from an earlier kernel: set CUDA_LAUNCH_BLOCKING=1 to find it");
  }

  cudaStream_t fetching = nullptr, sending = nullptr;
};

class CudaAsyncCopy final : public AsyncCopy {
 public:
  explicit CudaAsyncCopy(std::shared_ptr<CopyStreams> streams) : streams_(std::move(streams)) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~CudaAsyncCopy() override {
    cudaEventSynchronize(event_);
    cudaEventDestroy(event_);
  }

  void fetch(void* to_host, const void* from, std::int64_t bytes) override {
    copy_in_order(to_host, from, bytes, streams_->fetching);
  }
  void send_in_order(void* to, const void* from_host, std::int64_t bytes) override {
    copy_in_order(to, from_host, bytes, streams_->sending);
  }
  void send(void* to, const void* from_host, std::int64_t bytes) override { copy(to, from_host, bytes, streams_->sending); }
  bool over() override {
    return event_completed(event_, [](cudaError_t state) { check(state, "cudaEventQuery"); });
  }

 private:
  static void check(cudaError_t result, const char* call) { CopyStreams::check(result, call); }
  void copy_in_order(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
    check(cudaEventRecord(event_, cudaStreamLegacy), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
    copy(to, from, bytes, stream);
  }
  void copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
    if (bytes > 0)
      check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }

  std::shared_ptr<CopyStreams> streams_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace chorale
