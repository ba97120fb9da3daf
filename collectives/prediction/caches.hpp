// Models the contents of the cores' caches when the same call is repeated. For each work item (work.hpp), the model counts
// the elements that hit in the core's own caches, and the elements that the core must fetch. In the model, a core's caches
// hold all data that the core has read or written, until another core writes the data:
//
//   in place, 2 ranks     rank 0 reads half a of both vectors and writes both, so its core holds both in the next call
//   one_shot, in place    each rank reads both vectors and writes its own, so the next call fetches the other vector
//
// A store to data that the same work item has just loaded is free, because the cache lines are still in the innermost cache.
// This model ignores the capacity of caches. Instead, prices depend on the number of bytes that a core accesses
// (prices.hpp).
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale::prediction {

enum class Access { load, add, store };  // `add` is a load whose value is added

class Caches {
 public:
  // `core_of`: the core of each rank. Core numbers must be below 64.
  Caches(const std::vector<Schedule>& ranks, std::vector<int> core_of);

  // Records that the core of rank `by` accesses elements of rank `owner`, as part of the work item with the number `work`.
  // Accesses must be recorded in the order in which they happen.
  void note(int work, int by, int owner, const Range& elements, Access access);

  struct Count {  // numbers of elements
    double held = 0, fetched = 0;
    double added = 0;  // the elements among `fetched` that are loaded to be added
  };
  std::vector<Count> counts(std::size_t works);  // one Count per work item, for the second of two equal calls
  double touched(int rank) const;                // number of elements that this rank's core accesses; valid after counts()

 private:
  struct Note {
    int work, core, owner;
    std::size_t first, last;
    Access access;
  };
  std::vector<Schedule> const& ranks_;
  std::vector<int> core_of_;
  std::vector<Note> notes_;
  std::vector<double> touched_;  // indexed by core
};

}  // namespace chorale::prediction
