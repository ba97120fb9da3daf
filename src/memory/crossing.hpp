// Bytes on their way between a device and the host, which nobody waits for: beside what the caller has the device compute, and told when they
// are there by being asked.
//
//   the caller's streams   … [ kernel ][ kernel ]┐ …                    may be far from done
//   fetch                                        └─▶[ device → host ]  ─▶ over() is true
//   send                     [ host → device ]  ─▶ over() is true
//
// The host's memory should be pinned: CUDA has the host wait where it is not. A crossing is used again once it is over.
#pragma once
#include <cstdint>

namespace chorale {

class Crossing {
 public:
  virtual ~Crossing() = default;  // waits for what is under way
  // Once all is done that was asked of the device so far.
  virtual void fetch(void* to_host, const void* from, std::int64_t bytes) = 0;
  virtual void send(void* to, const void* from_host, std::int64_t bytes) = 0;  // now
  virtual bool over() = 0;                                                     // does not wait
};

}  // namespace chorale
