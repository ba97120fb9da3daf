// Binomial scatter: the binomial gather in reverse. Each rank sends to its children in the tree, the most distant child
// first. Each message contains all blocks of the child's subtree. The algorithm takes ⌈log₂ p⌉ rounds for p ranks.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void binomial_scatter(Schedule& s, int root, const Home& home) {
  const Problem& p = s.problem();
  const int me = modulo(p.rank - root, p.size);
  int bit = 1;
  while (bit < p.size && !(me & bit)) bit *= 2;
  if (me != 0)
    for (const Range& piece : around(home, p.size, p.rank, std::min(bit, p.size - me)))
      s.recv(modulo(p.rank - bit, p.size), piece);
  for (bit /= 2; bit >= 1; bit /= 2) {
    s.round();
    if (me + bit < p.size)
      for (const Range& piece : around(home, p.size, p.rank + bit, std::min(bit, p.size - me - bit)))
        s.send(modulo(p.rank + bit, p.size), piece);
  }
}

namespace scatter {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  const Range mine = output(0, p.blocks.count(p.rank));
  const Home home = p.rank == p.root ? in_input(p) : in_scratch(s);
  binomial_scatter(s, p.root, home);
  s.copy(home(p.rank), mine);
  return s;
}

}  // namespace scatter
}  // namespace chorale
