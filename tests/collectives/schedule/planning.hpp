// Helpers for tests of schedules. These helpers find an algorithm by name, make a problem with even blocks, and divide the
// schedules of all ranks into chunks.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "collectives/schedule/chunking.hpp"

namespace chorale::test {

inline const Algorithm& named(Collective what, const std::string& name) {
  if (const Algorithm* algorithm = find_algorithm(what, name)) return *algorithm;
  throw std::runtime_error("no algorithm " + name);
}

inline Problem even(Collective what, std::int64_t count, int size, bool in_place = false, int root = 0) {
  return Problem::even(what, count, size, root, in_place);
}

inline std::vector<Schedule> cut_all(std::vector<Schedule> ranks, int chunks) {
  for (Schedule& rank : ranks) rank = cut_into_chunks(rank, chunks);
  return ranks;
}

}  // namespace chorale::test
