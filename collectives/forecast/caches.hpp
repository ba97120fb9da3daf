// Models which bytes a core finds in its own caches, and which bytes it must fetch from another core, if the same call is
// repeated. A core holds the data that it has read or written since another core last wrote them:
//
//   in place, 2 ranks     rank 0 reads halves a of both vectors, and writes the sum to both: in the next call it holds both
//   one_shot, in place    each rank reads both vectors, and writes its own: in the next call the other vector is not held
//
// A store to data that the same work has just loaded is free, because their cache lines are in the innermost cache. The
// capacity of caches is not modeled here. Instead, prices depend on how many bytes a core touches (prices.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale::forecast {

enum class Access { load, add, store };  // add: a load by a sum

class Caches {
 public:
  // `core_of`: the core of each rank; core numbers are below 64.
  Caches(const std::vector<Schedule>& ranks, std::vector<int> core_of);

  // Records that the core of rank `by` accesses elements of rank `owner`, as part of work number `work`. Record accesses in
  // the order in which they happen.
  void note(int work, int by, int owner, const Range& elements, Access access);

  struct Count {  // elements
    double held = 0, fetched = 0;
    double added = 0;  // the fetched elements that are loaded to be added
  };
  std::vector<Count> counts(std::size_t works);  // for each work, the counts in the second of two equal calls
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
