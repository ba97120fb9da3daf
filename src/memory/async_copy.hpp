// Asynchronous copies between a device and the host. The copies overlap the device's computation. The caller polls over(),
// which returns whether the copy has completed.
//
//   the caller's streams   … [ kernel ][ kernel ]┐ …                    may still be running
//   fetch                                        └─▶[ device → host ]  ─▶ over() is true
//   send                     [ host → device ]  ─▶ over() is true
//   send_in_order                               └─▶[ host → device ]  ─▶ over() is true
//
// The host memory should be pinned; otherwise CUDA blocks the host during the copy. An AsyncCopy can be reused after over()
// has returned true.
#pragma once
#include <cstdint>

namespace chorale {

class AsyncCopy {
 public:
  virtual ~AsyncCopy() = default;  // waits for a copy in flight
  // Starts after all device work enqueued so far is done.
  virtual void fetch(void* to_host, const void* from, std::int64_t bytes) = 0;
  virtual void send(void* to, const void* from_host, std::int64_t bytes) = 0;  // starts immediately
  // Starts after all device work enqueued so far is done, because that work might still use the memory at `to`.
  virtual void send_in_order(void* to, const void* from_host, std::int64_t bytes) { send(to, from_host, bytes); }
  virtual bool over() = 0;  // whether the last copy has completed; never blocks
  virtual void wait() {     // waits until the last copy has completed
    while (!over()) {}
  }
};

}  // namespace chorale
