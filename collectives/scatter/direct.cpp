// Direct scatter: the root sends each rank its block. The algorithm takes one round; with p ranks, the root sends p−1
// messages.
#include "collectives/schedule/phases.hpp"

namespace chorale::scatter {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const Range mine = output(0, p.blocks.count(p.rank));
  const Home home = in_input(p);
  s.round();
  if (p.rank != p.root) {
    s.recv(p.root, mine);
    return s;
  }
  for (int k = 1; k < p.size; ++k) s.send(modulo(p.root + k, p.size), home(modulo(p.root + k, p.size)));
  s.copy(home(p.rank), mine);
  return s;
}

}  // namespace chorale::scatter
