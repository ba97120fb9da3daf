// The state that all groups of a world share on one rank: the transport, its memory, the selector that `auto` uses, and the
// free group ids.
#pragma once
#include <memory>
#include <vector>

#include <chorale/clock.hpp>
#include "collectives/call/communicator.hpp"
#include "collectives/transport/transport.hpp"
#include "src/base/mpi.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct World {
  World(std::shared_ptr<Transport> joined, Clock& clock, const WorldOptions& options);
  ~World();
  Clock& clock;
  std::shared_ptr<const mpi::Runtime> part;  // used by the transport: WorldOptions::part
  const mpi::Runtime* runtime;               // null if ranks are threads
  std::shared_ptr<Transport> transport;
  Ledger ledger;
  Allocator allocator;             // allocates the transport's memory
  std::shared_ptr<Memory> device;  // memory of the device where callers' buffers may lie; null if there is none
  std::shared_ptr<const Selector> selector;
  std::vector<std::uint8_t> free_ids;  // 1 if this rank is in no group with that id
};

// Prints the error and ends the process. For destructors, which cannot throw, when they find that ranks made different
// calls.
[[noreturn]] void end_rank(const std::exception& error, const World& world);

}  // namespace chorale
