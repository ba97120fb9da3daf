// A World is the state that all groups of a world share on one rank. A World holds the transport, the transport's memory,
// the selector for `auto`, and the free group ids.
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
  std::shared_ptr<const mpi::Runtime> part;  // the runtime that the transport uses (WorldOptions::part)
  const mpi::Runtime* runtime;               // null if the ranks are threads
  std::shared_ptr<Transport> transport;
  Ledger ledger;
  Allocator allocator;             // allocates memory of the transport
  std::shared_ptr<Memory> device;  // memory of the device for callers' buffers; null if there is none
  std::shared_ptr<const Selector> selector;
  std::vector<std::uint8_t> free_ids;  // indexed by id: 1 if the id is free, because this rank is in no group with the id
};

struct NamedText {
  std::string text, name;  // the name is for errors
};
// Makes the selector from rank 0's tuning table and machine file, because the files of other hosts can differ but all ranks
// must choose the same algorithm. The texts are used on rank 0 only; "" means that there is no such file.
Selector selector_of_rank_0(const mpi::Runtime& runtime, const NamedText& tuning, const NamedText& machine);

// Prints the error and ends the process. Destructors, which cannot throw, call this function when they detect mismatched
// calls.
[[noreturn]] void end_rank(const std::exception& error, const World& world);

}  // namespace chorale
