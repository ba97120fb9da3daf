// Hierarchical all-reduce, for links that are fast within a host and slow between hosts. On each host, every rank sums its
// own lanes of the vector (schedule/lanes.hpp). Then, for each lane, the owners on all n hosts all-reduce the lane by a
// circulant exchange. Finally, the ranks of each host gather all lanes. So every host sends 2(n−1)/n times the vector's size
// to other hosts, which is the minimum for any algorithm.
#include "collectives/schedule/hierarchy.hpp"

namespace chorale::all_reduce {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const std::int64_t count = p.blocks.total();
  Hierarchy work(s, output(0, count));
  work.sum_within(input(0, count));
  work.sum_between();
  work.gather_between();
  work.gather_within();
  return s;
}

}  // namespace chorale::all_reduce
