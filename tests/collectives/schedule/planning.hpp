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

// Rank 0 receives an element from rank 1 and sends it back. Then it sends an element of its own, which was ready at once.
inline std::vector<Schedule> forwarding_ranks() {
  const Problem problem = Problem::even(Collective::all_reduce, 3, 2);
  std::vector<Schedule> ranks{Schedule(problem), Schedule(problem.at(1))};
  ranks[0].recv(1, output(0, 1));
  ranks[0].send(1, output(0, 1));
  ranks[0].send(1, input(1, 1));
  ranks[1].send(0, input(0, 1));
  ranks[1].recv(0, output(1, 1));
  ranks[1].recv(0, output(2, 1));
  return ranks;
}

}  // namespace chorale::test
