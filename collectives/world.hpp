// What all groups of one world share: the transport that joins their ranks, its memory, what `auto` goes by, and which ids of groups are free.
#pragma once
#include <memory>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/selection.hpp"
#include "src/base/clock.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct World {
  World(std::shared_ptr<Transport> joined, Clock& clock);
  ~World();
  Clock& clock;
  std::shared_ptr<Transport> transport;
  Ledger ledger;
  Allocator allocator;             // of the transport's memory
  std::shared_ptr<Memory> device;  // of buffers on a device: who copies them
  std::shared_ptr<const Selector> selector;
  std::vector<std::uint8_t> free_ids;  // of groups: 1 where this rank is in none of that id
};

// Ends this rank from a destructor, which cannot throw, when calls of ranks differed: their results are wrong.
[[noreturn]] void end_rank(const std::exception& error, const Transport& transport);

}  // namespace chorale
