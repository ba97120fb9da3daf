// Direct reduce: each rank receives its own block of all vectors, sums it, and sends the sum to the root. Two rounds; each
// rank sends at most one vector in total. On mapped memory all ranks sum at the same time, directly into the root's output.
#include "collectives/phases.hpp"

namespace chorale::reduce {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const Home home = in_output(p);
  const Range mine = p.rank == p.root ? home(p.rank) : s.scratch(p.blocks.count(p.rank));
  direct_reduce_scatter(s, mine);
  s.round();
  if (p.rank != p.root) {
    s.send(p.root, mine);
    return s;
  }
  for (int k = 1; k < p.size; ++k) s.recv(modulo(p.root + k, p.size), home(modulo(p.root + k, p.size)));
  return s;
}

}  // namespace chorale::reduce
