// Through a Reach, a rank accesses the memory of other ranks. A Reach uses mappings for symmetric memory, and copies by the
// operating-system kernel for ordinary memory.
//
// A Location represents an address in the memory of one rank (the owner) so that all ranks can interpret it. In symmetric
// memory, a Location is an offset; in ordinary memory, a Location is the owner's virtual address.
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
  virtual void* map(int world_rank, Location location) const = 0;  // address in this process, or null if it is not mapped
  virtual bool can_read() const = 0;                               // whether read() works for ordinary memory of all ranks
  virtual void read(int world_rank, Location from, void* into, std::int64_t bytes) const = 0;
  virtual Allocator& memory() = 0;

  // Some calls can be split into slices (slices.hpp). These calls copy ordinary buffers through symmetric memory in slices
  // of this size. A slice stays in the L2 cache.
  std::int64_t slice_bytes = 512 << 10;

  // Calls that cannot be split into slices copy an ordinary buffer of up to this size to symmetric memory and back. Up to
  // this size, the copy is faster than a read by the kernel, which must pin the buffer's pages. The kernel reads larger
  // buffers directly.
  std::int64_t copied_up_to = 8 << 20;

  // Calls whose data exceed the last-level cache use non-temporal stores. The cache size is read from the system only once,
  // because reading it takes 10 µs.
  const std::int64_t cache_bytes = last_level_cache_bytes();
};

}  // namespace chorale::mapped
