#include "tests/cuda/emulation/streams.hpp"

#include <memory>
#include <utility>
#include <vector>

struct EmulatedEvent {
  std::shared_ptr<bool> passed = std::make_shared<bool>(true);  // each record has one of its own: who waits, waits for that
};

namespace emulation {
namespace {

std::vector<cudaStream_t>& streams() {
  static std::vector<cudaStream_t> all;  // of the emulated device, as its memory is
  return all;
}

}  // namespace

void put(cudaStream_t stream, Task task) {
  if (stream) return stream->tasks.push_back(std::move(task));
  while (!task()) advance();
}

void advance() {
  for (const cudaStream_t stream : streams())
    while (!stream->tasks.empty() && stream->tasks.front()()) stream->tasks.pop_front();
}

}  // namespace emulation

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  emulation::streams().push_back(*stream = new EmulatedStream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(emulation::streams(), stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  while (stream && !stream->tasks.empty()) emulation::advance();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  emulation::put(stream, [passed = event->passed] { return *passed; });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->passed = std::make_shared<bool>(false);
  emulation::put(stream, [passed = event->passed] { return *passed = true; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  emulation::advance();
  return *event->passed ? cudaSuccess : cudaErrorNotReady;
}
