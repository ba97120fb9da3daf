// Hierarchical broadcast, for links that are fast within a host and slow between hosts. The root's host sends a different
// part of the vector to each of the other hosts, and these hosts exchange their parts. So the root's host sends the vector
// once, and every other host receives the vector once, which is the minimum for any algorithm. No other host sends more data
// than the root's host.
//
//   hosts 0 0 1 1 2 2, root 0    rank 0 gives rank 1 lane 1
//                                rank 0 sends lane 0, rank 1 sends lane 1: the first half to host 1, the second to host 2
//                                ranks 2 and 4 exchange the halves of lane 0, ranks 3 and 5 the halves of lane 1
//                                each host gathers both lanes
#include "collectives/schedule/hierarchy.hpp"

namespace chorale::broadcast {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Range whole = output(0, p.blocks.total());
  if (p.rank == p.root) s.copy(input(0, whole.count), whole);
  Hierarchy work(s, whole);
  work.scatter_within(p.root);
  work.send_pieces(p.root);
  work.gather_between();
  work.gather_within(p.root);
  return s;
}

}  // namespace chorale::broadcast
