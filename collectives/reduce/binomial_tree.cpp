// Binomial reduce: the p ranks are numbered from the root. In round k, each rank with bit k set in its number sends its
// partial sum to the rank with the same number but bit k cleared. The algorithm takes ⌈log₂ p⌉ rounds; each rank except the
// root sends one complete vector.
//
//   p = 6    round 0: 1→0, 3→2, 5→4     round 1: 2→0     round 2: 4→0
#include "collectives/schedule/phases.hpp"

namespace chorale {

void binomial_reduce(Schedule& s, int root, Range own, const std::function<Range()>& sum) {
  const Problem& p = s.problem();
  const int me = modulo(p.rank - root, p.size);
  Range have = own;
  for (int bit = 1; bit < p.size; bit *= 2) {
    s.round();
    if (me & bit) {
      s.send(modulo(p.rank - bit, p.size), have);
      return;
    }
    if (me + bit >= p.size) continue;
    const Range into = have.place == Place::input ? sum() : have;
    s.recv_reduce(modulo(p.rank + bit, p.size), have, into);
    have = into;
  }
  if (p.size == 1) s.copy(own, sum());
}

namespace reduce {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  const std::int64_t n = p.blocks.total();
  binomial_reduce(s, p.root, input(0, n), [&] { return p.rank == p.root ? output(0, n) : s.scratch(n); });
  return s;
}

}  // namespace reduce
}  // namespace chorale
