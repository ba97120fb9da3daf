// Binomial gather: the p ranks are numbered from the root. In round k, each rank with bit k set in its number sends all
// collected blocks to the rank with the same number but bit k cleared. The algorithm takes ⌈log₂ p⌉ rounds, and a block is
// sent up to ⌈log₂ p⌉ times.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void binomial_gather(Schedule& s, int root, const Home& home) {
  const Problem& p = s.problem();
  const int me = modulo(p.rank - root, p.size);
  for (int bit = 1; bit < p.size; bit *= 2) {
    s.round();
    if (me & bit) {
      for (const Range& piece : around(home, p.size, p.rank, std::min(bit, p.size - me)))
        s.send(modulo(p.rank - bit, p.size), piece);
      return;
    }
    if (me + bit < p.size)
      for (const Range& piece : around(home, p.size, p.rank + bit, std::min(bit, p.size - me - bit)))
        s.recv(modulo(p.rank + bit, p.size), piece);
  }
}

namespace gather {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.count(p.rank));
  const Home home = p.rank == p.root ? in_output(p) : in_scratch(s);
  s.copy(own, home(p.rank));
  binomial_gather(s, p.root, home);
  return s;
}

}  // namespace gather
}  // namespace chorale
