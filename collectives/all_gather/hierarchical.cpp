// Hierarchical all-gather, for links that are fast within a host and slow between hosts. The algorithm is the reverse of the
// hierarchical reduce-scatter. First, for each lane (schedule/lanes.hpp), the owners on all hosts exchange their blocks.
// Then the ranks of each host gather all lanes. So each host receives every block of the other hosts exactly once, which is
// the minimum for any algorithm. If all n hosts have the same amount of data, each host receives (n−1)/n of the vector.
#include "collectives/schedule/hierarchy.hpp"
#include "collectives/schedule/phases.hpp"

namespace chorale::all_gather {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  s.copy(input(0, p.blocks.count(p.rank)), in_output(p)(p.rank));
  Hierarchy work(s, output(0, p.blocks.total()));
  work.gather_between();
  work.gather_within();
  return s;
}

}  // namespace chorale::all_gather
