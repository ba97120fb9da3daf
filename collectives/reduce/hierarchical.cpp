// Hierarchical reduce, for links that are fast within a host and slow between hosts. The algorithm is the reverse of the
// hierarchical broadcast. First the ranks of each host sum their vectors. Then all hosts except the root's host exchange
// their sums. Each of these hosts sends a different part of the total to the root's host. In total, each of these hosts
// sends as much data as one vector, and the root's host receives as much data as one vector. Both amounts are the minimum
// for any algorithm.
#include "collectives/schedule/hierarchy.hpp"

namespace chorale::reduce {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const std::int64_t count = p.blocks.total();
  const Range whole = p.rank == p.root ? output(0, count) : s.scratch(count);
  Hierarchy work(s, whole);
  work.sum_within(input(0, count));
  work.sum_between();
  work.collect_pieces(p.root);
  work.gather_at(p.root);
  return s;
}

}  // namespace chorale::reduce
