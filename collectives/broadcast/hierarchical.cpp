// Hierarchical broadcast, for links that are fast within a host and slow between hosts. The root's host sends each other
// host a different part of the vector, and these hosts exchange their parts. So the vector leaves the root's host once and
// enters every other host once, and no algorithm can send less. No other host sends more than the root's host does.
//
//   hosts 0 0 1 1 2 2, root 0    rank 0 gives rank 1 lane 1
//                                rank 0 sends lane 0, and rank 1 lane 1: the first half to host 1, the second to host 2
//                                ranks 2 and 4 exchange the halves of lane 0, ranks 3 and 5 those of lane 1
//                                each host gathers both lanes
#include "collectives/schedule/hierarchy.hpp"

namespace chorale::broadcast {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Lanes lanes(p);
  const Range whole = output(0, p.blocks.total());
  if (p.rank == p.root) s.copy(input(0, whole.count), whole);
  Hierarchy work(s, lanes, even_pieces(lanes, whole.count, lanes.hosts_beyond(p.root)), whole);
  work.scatter_within(p.root);
  work.send_pieces(p.root);
  work.gather_between();
  work.gather_within(p.root);
  return s;
}

}  // namespace chorale::broadcast
