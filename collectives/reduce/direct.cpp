// Direct reduce: each rank receives its block of every rank's vector, sums these blocks, and sends the sum to the root. The
// algorithm takes two rounds; each rank sends at most one vector in total. If ranks map each other's memory, each rank
// writes its sum directly to the root's output, so the second round sends no data.
#include "collectives/schedule/phases.hpp"

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
  for (const int peer : others_from(p.root, p.size)) s.recv(peer, home(peer));
  return s;
}

}  // namespace chorale::reduce
