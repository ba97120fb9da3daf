// Binomial broadcast: every rank that has received the vector forwards the vector to its children in the tree, the most
// distant child first. The algorithm takes ⌈log₂ p⌉ rounds for p ranks. The root sends ⌈log₂ p⌉ complete vectors, and half
// of the ranks send nothing.
//
//   p = 6    0→4     0→2     0→1, 2→3, 4→5
#include "collectives/schedule/phases.hpp"

namespace chorale {

void binomial_broadcast(Schedule& s, int root, Range whole) {
  const Problem& p = s.problem();
  const int me = modulo(p.rank - root, p.size);
  int bit = 1;
  while (bit < p.size && !(me & bit)) bit *= 2;
  if (me != 0) s.recv(modulo(p.rank - bit, p.size), whole);
  for (bit /= 2; bit >= 1; bit /= 2) {
    s.round();
    if (me + bit < p.size) s.send(modulo(p.rank + bit, p.size), whole);
  }
}

namespace broadcast {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  const Range whole = output(0, p.blocks.total());
  if (p.rank == p.root) s.copy(input(0, whole.count), whole);
  binomial_broadcast(s, p.root, p.rank == p.root ? input(0, whole.count) : whole);
  return s;
}

}  // namespace broadcast
}  // namespace chorale
