// How a rank reaches the memory of another: through a mapping where there is one, else by asking the kernel to copy.
//
// A Location says where something lies in words that mean the same on every rank: an offset into its owner's symmetric memory, or, for
// ordinary memory, the owner's own address.
#pragma once
#include <cstdint>
#include <vector>

#include "src/memory/buffer.hpp"

namespace chorale::mapped {

using Location = std::uint64_t;
constexpr Location is_mapped = Location{1} << 63;

class Reach {
 public:
  virtual ~Reach() = default;
  virtual Location locate(const void* mine) const = 0;
  virtual void* map(int world_rank, Location location) const = 0;  // nullptr when it is not mapped
  virtual bool can_read() const = 0;                               // ordinary memory of others
  virtual void read(int world_rank, Location from, void* into, std::int64_t bytes) const = 0;
  virtual Allocator& memory() = 0;

  // Ordinary buffers of calls that can be cut are taken through symmetric memory in slices of this size, which stay in the second cache.
  std::int64_t slice_bytes = 512 << 10;

  // Of other calls, ordinary buffers up to this size are copied into symmetric memory and back, which is faster than having the kernel read them (it
  // pins pages); larger ones are not.
  std::int64_t copied_up_to = 8 << 20;
};

}  // namespace chorale::mapped
