// Streams and events. Recording an event puts a task into the stream. When the stream runs the task, the recording is marked
// as complete.
#include "tests/cuda/emulation/streams.hpp"

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda/emulation/far.hpp"

struct EmulatedEvent {
  struct Record {  // one per recording, so that a wait refers to the latest recording before the wait
    bool passed = true, late = false;
    std::chrono::steady_clock::time_point when;
  };
  std::shared_ptr<Record> record = std::make_shared<Record>();
};

namespace emulation {
namespace {

struct Streams {  // one per process, like the emulated device
  std::vector<cudaStream_t> made;
  // Tasks of the default stream that have not run yet. These are copies from pinned memory and events recorded after such
  // copies. While the stream is held, `late` contains all new tasks.
  std::deque<Task> late;
  bool held = false;
  std::map<const std::byte*, std::size_t> pinned;  // address → bytes
  std::int64_t waits = 0;

  bool is_pinned(const void* place) const {
    const auto after = pinned.upper_bound(static_cast<const std::byte*>(place));
    if (after == pinned.begin()) return false;
    const auto& [first, bytes] = *std::prev(after);
    return static_cast<const std::byte*>(place) < first + bytes;
  }
  void catch_up() {
    for (; !late.empty(); late.pop_front()) late.front()();
  }
};
Streams& streams() {
  static Streams all;
  return all;
}

}  // namespace

void put(cudaStream_t stream, Task task) {
  if (stream) return stream->tasks.push_back(std::move(task));
  if (streams().held) return streams().late.push_back(std::move(task));
  streams().catch_up();
  while (!task()) advance();
}

void advance() {
  if (!streams().held) streams().catch_up();
  for (const cudaStream_t stream : streams().made)
    while (!stream->tasks.empty() && stream->tasks.front()()) stream->tasks.pop_front();
}

void count_wait() { ++streams().waits; }

}  // namespace emulation

using emulation::put, emulation::streams;

extern "C" std::int64_t chorale_emulated_waits() { return streams().waits; }
extern "C" void chorale_emulated_hold(bool held) { streams().held = held; }

cudaError_t cudaHostRegister(void* place, std::size_t bytes, unsigned) {
  streams().pinned[static_cast<const std::byte*>(place)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* place) {
  streams().catch_up();
  streams().pinned.erase(static_cast<const std::byte*>(place));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const auto copy = [=] {
    const emulation::Open open;
    std::memcpy(to, from, bytes);
    return true;
  };
  if (!stream && streams().is_pinned(from)) {
    streams().late.emplace_back(copy);
    return cudaSuccess;
  }
  const bool is_pageable = !emulation::is_far(from) && !streams().is_pinned(from);
  const bool to_pageable =
      stream && !emulation::is_far(to) && !streams().is_pinned(to);  // in the default stream, the copy completes immediately
  if (is_pageable || to_pageable) emulation::count_wait();
  put(stream, copy);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* place, int value, std::size_t bytes, cudaStream_t stream) {
  put(stream, [=] {
    const emulation::Open open;
    std::memset(place, value, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  streams().made.push_back(*stream = new EmulatedStream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(streams().made, stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emulation::count_wait();
  streams().catch_up();
  do emulation::advance();
  while (stream && !stream->tasks.empty());
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  put(stream, [record = event->record] { return record->passed; });
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
  event->record = std::make_shared<EmulatedEvent::Record>(
      EmulatedEvent::Record{.passed = false, .late = !stream && (streams().held || !streams().late.empty()), .when = {}});
  const auto pass = [record = event->record] {
    *record = {true, false, std::chrono::steady_clock::now()};
    return true;
  };
  if (event->record->late)
    streams().late.emplace_back(pass);
  else
    put(stream, pass);
  return cudaSuccess;
}
namespace {

// An event after delayed copies is not complete at the first query, because a real device can also be late.
bool passed(cudaEvent_t event) {
  if (!std::exchange(event->record->late, false)) emulation::advance();
  return event->record->passed;
}

}  // namespace

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return passed(event) ? cudaSuccess : emulation::remembered(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (passed(event)) return cudaSuccess;
  emulation::count_wait();
  streams().catch_up();
  while (!event->record->passed) emulation::advance();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->record->when - from->record->when).count();
  return cudaSuccess;
}
