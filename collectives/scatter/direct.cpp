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
  for (const int peer : others_from(p.root, p.size)) s.send(peer, home(peer));
  s.copy(home(p.rank), mine);
  return s;
}

}  // namespace chorale::scatter
