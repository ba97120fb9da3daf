// Small asynchronous copies to a device. send() copies the host's bytes into pinned memory before it returns. The device
// reads the pinned memory in stream order.
//
//   host ──memcpy──▶ [ slot 0 ][ slot 1 ] … [ slot 7 ] ──in the order of the default stream──▶ device
//                      a slot is reused once the device has passed the event after its copy
//
// Cost: one copy within the host. A slot is 1 MiB of pinned memory, which is allocated on first use and not counted in any
// ledger.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace chorale {

class Staging {
 public:
  static constexpr std::int64_t slot_bytes = 1 << 20;

  Staging() = default;
  Staging(const Staging&) = delete;
  ~Staging() {
    for (const Slot& slot : slots_) {
      if (!slot.place) continue;
      cudaEventSynchronize(slot.fetched);
      cudaEventDestroy(slot.fetched);
      cudaFreeHost(slot.place);
    }
  }

  // Copies at most slot_bytes bytes. The caller can change `from` after send() returns.
  cudaError_t send(void* to, const void* from, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[next_++ % slots_.size()];
    if (const cudaError_t error = make_free(slot)) return error;
    std::memcpy(slot.place, from, static_cast<std::size_t>(bytes));
    const cudaError_t error = cudaMemcpyAsync(to, slot.place, static_cast<std::size_t>(bytes), cudaMemcpyDefault, nullptr);
    return error ? error : cudaEventRecord(slot.fetched, nullptr);
  }

 private:
  struct Slot {
    void* place = nullptr;
    cudaEvent_t fetched = nullptr;
  };

  static cudaError_t make_free(Slot& slot) {
    if (slot.place) return cudaEventSynchronize(slot.fetched);
    if (const cudaError_t error = cudaEventCreateWithFlags(&slot.fetched, cudaEventDisableTiming)) return error;
    return cudaMallocHost(&slot.place, slot_bytes);
  }

  std::mutex mutex_;
  std::array<Slot, 8> slots_;
  std::size_t next_ = 0;
};

}  // namespace chorale
