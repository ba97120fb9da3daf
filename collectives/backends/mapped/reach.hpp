// How a rank accesses another rank's memory: through a mapping if there is one, otherwise by a copy that the kernel makes.
//
// A Location names an address of one rank, its owner, in a way that all ranks understand. It is an offset into the owner's
// symmetric memory or, for ordinary memory, the owner's virtual address.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/host.hpp"
#include "src/memory/buffer.hpp"

namespace chorale::mapped {

using Location = std::uint64_t;
constexpr Location is_mapped = Location{1} << 63;

class Reach {
 public:
  virtual ~Reach() = default;
  virtual Location locate(const void* mine) const = 0;
  virtual void* map(int world_rank, Location location) const = 0;  // the address in this process; null if not mapped
  virtual bool can_read() const = 0;                               // whether read() works for ordinary memory of all ranks
  virtual void read(int world_rank, Location from, void* into, std::int64_t bytes) const = 0;
  virtual Allocator& memory() = 0;

  // Calls that can be cut (slices.hpp) copy ordinary buffers through symmetric memory in slices of this size, which stay in
  // the L2 cache.
  std::int64_t slice_bytes = 512 << 10;

  // Other calls copy an ordinary buffer of up to this size to symmetric memory and back. This is faster than a read by the
  // kernel, which must pin the buffer's pages. The kernel reads larger buffers.
  std::int64_t copied_up_to = 8 << 20;

  // Calls whose data exceed the caches use non-temporal stores. The value is read from the system only once, because this
  // takes 10 µs.
  const std::int64_t cache_bytes = last_level_cache_bytes();
};

}  // namespace chorale::mapped
