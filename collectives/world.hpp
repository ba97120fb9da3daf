// What all groups of a world share: the transport between their ranks, its memory, the selector of `auto`, free group ids.
#pragma once
#include <memory>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/selection.hpp"
#include "src/base/clock.hpp"
#include "src/base/mpi.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct World {
  World(std::shared_ptr<Transport> joined, Clock& clock, std::shared_ptr<const mpi::Runtime> part);
  ~World();
  Clock& clock;
  std::shared_ptr<const mpi::Runtime> part;  // used by the transport: WorldOptions::part
  std::shared_ptr<Transport> transport;
  Ledger ledger;
  Allocator allocator;             // of the transport's memory
  std::shared_ptr<Memory> device;  // copies buffers that are on a device
  std::shared_ptr<const Selector> selector;
  std::vector<std::uint8_t> free_ids;  // 1 if this rank is in no group with that id
};

// Ends this rank from a destructor, which cannot throw, after ranks made different calls: their results are wrong.
[[noreturn]] void end_rank(const std::exception& error, const Transport& transport);

}  // namespace chorale
