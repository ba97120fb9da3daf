// Which bytes a core finds in its own caches, and which it must fetch from another core, if the same call is repeated. A
// core holds what it has read or written since another core last wrote it:
//
//   in place, 2 ranks     rank 0 reads halves a of both vectors, and writes the sum to both: in the next call it holds both
//   one_shot, in place    each rank reads both vectors, and writes its own: in the next call the other vector is not held
//
// A store to what the same work has just loaded is free: the line is in the innermost cache, and is loaded only once.
// Capacity is not modelled here: prices depend on how many bytes a core touches (prices.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace chorale::forecast {

enum class Access { load, add, store };  // add: a load by a sum

class Caches {
 public:
  // `core_of`: by rank, the number of its core, below 64.
  Caches(const std::vector<Schedule>& ranks, std::vector<int> core_of);

  // Notes that the core of rank `by` accesses elements of rank `owner`, as part of work number `work`. Accesses are noted in
  // the order in which they happen.
  void note(int work, int by, int owner, const Range& elements, Access access);

  struct Count {  // elements
    double held = 0, fetched = 0;
    double added = 0;  // those of the fetched elements that are loaded to be added
  };
  std::vector<Count> counts(std::size_t works);  // by work, in the second of two equal calls
  double touched(int rank) const;                // elements that the core of this rank touches; valid after counts()

 private:
  struct Note {
    int work, core, owner;
    std::size_t first, last;
    Access access;
  };
  std::vector<Schedule> const& ranks_;
  std::vector<int> core_of_;
  std::vector<Note> notes_;
  std::vector<double> touched_;  // by core
};

}  // namespace chorale::forecast
