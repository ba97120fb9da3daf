// Through a Reach, a rank accesses the memory of other ranks. A Reach uses mappings for symmetric memory, and copies by the
// operating-system kernel for ordinary memory.
//
// A Location represents an address in the memory of one rank (the owner) so that all ranks can interpret it. In symmetric
// memory, a Location is an offset; in ordinary memory, a Location is the owner's virtual address.
#pragma once
#include <cstdint>

#include "src/base/host.hpp"
#include "src/memory/buffer.hpp"

namespace chorale::mapped {

using Location = std::uint64_t;
constexpr Location is_mapped = Location{1} << 63;
// The longest staged messages, used unless `tune --calibrate` has measured the length. On shared cores, longer messages are
// staged, because the owner of a staged message need not wait until its readers have had their turn on the core.
constexpr std::int64_t usual_staged_bytes = 2 << 10, staged_bytes_on_shared_cores = 32 << 10;

class Reach {
 public:
  virtual ~Reach() = default;
  virtual Location locate(const void* mine) const = 0;
  virtual void* map(int world_rank, Location location) const = 0;  // address in this process, or null if it is not mapped
  // Whether read() and write() work for ordinary memory of all ranks; equal on all ranks.
  virtual bool has_kernel_copies() const = 0;
  virtual void read(int world_rank, Location from, void* into, std::int64_t bytes) const = 0;
  virtual void write(int world_rank, Location into, const void* from, std::int64_t bytes) const = 0;
  virtual Allocator& memory() = 0;

  // Messages of up to this size from ordinary buffers are staged. Up to this size, the copy to the stage takes less time
  // than a copy by the kernel, which must pin the pages of the buffer. `tune --calibrate` measures the size. The value must
  // be equal on all ranks. It is read when an operation is prepared.
  std::int64_t staged_up_to = usual_staged_bytes;

  // Calls whose data exceed the last-level cache use non-temporal stores. The cache size is read from the system only once,
  // because reading it takes 10 µs.
  const std::int64_t cache_bytes = last_level_cache_bytes();
};

}  // namespace chorale::mapped
