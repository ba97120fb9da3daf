// Hierarchical reduce-scatter, for links that are fast within a host and slow between hosts. On each host, every rank sums
// its own lanes of every host's blocks (schedule/lanes.hpp). Then, for each lane, the owners on all hosts exchange their
// sums. So each host sends one sum for every block of the other hosts, which is the minimum for any algorithm. If all n
// hosts own the same amount of data, each host sends (n−1)/n of the vector.
#include "collectives/schedule/hierarchy.hpp"

namespace chorale::reduce_scatter {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const std::int64_t count = p.blocks.total(), own = p.blocks.count(p.rank);
  const Range partial = s.scratch(count);
  Hierarchy work(s, partial);
  work.sum_within(input(0, count));
  work.sum_between();
  s.copy({partial.place, partial.first + p.blocks.first(p.rank), own}, output(0, own));
  return s;
}

}  // namespace chorale::reduce_scatter
