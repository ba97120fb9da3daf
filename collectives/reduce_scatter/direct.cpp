// Direct reduce-scatter: each of the p ranks receives its own block from all other ranks simultaneously, and sums the
// received blocks in rank order. The algorithm takes one round; each rank sends (p−1)/p of the vector, in p−1 messages.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void direct_reduce_scatter(Schedule& s, Range into) {
  const Problem& p = s.problem();
  const Home own = in_input(p);
  const std::vector<int> others = others_from(p.rank, p.size);
  s.round();
  for (const int peer : others) s.send(peer, own(peer));
  if (p.size == 1)
    s.copy(own(0), into);
  else
    s.recv_reduce(others, own(p.rank), into);
}

namespace reduce_scatter {

Schedule direct(const Problem& p) {
  Schedule s(p);
  direct_reduce_scatter(s, output(0, p.blocks.count(p.rank)));
  return s;
}

}  // namespace reduce_scatter
}  // namespace chorale
