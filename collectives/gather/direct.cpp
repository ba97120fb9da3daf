// Direct gather: all ranks send to the root, which receives in any order. On mapped memory, each rank writes its own block
// to the root's output. The algorithm takes one round; with p ranks, the root receives p−1 messages.
#include "collectives/schedule/phases.hpp"

namespace chorale::gather {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.count(p.rank));
  const Home home = in_output(p);
  s.round();
  if (p.rank != p.root) {
    s.put(p.root, own);
    return s;
  }
  s.copy(own, home(p.rank));
  for (const int peer : others_from(p.root, p.size)) s.recv(peer, home(peer));
  return s;
}

}  // namespace chorale::gather
