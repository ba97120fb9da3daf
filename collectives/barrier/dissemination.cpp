// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k, each rank tells the rank 2^k ahead which ranks have
// arrived, as far as it knows. The barrier takes ⌈log₂ p⌉ rounds for any number of ranks p. A rank may hear of the same
// arrival twice, which is harmless.
#include "collectives/schedule/phases.hpp"

namespace chorale::barrier {

Schedule dissemination(const Problem& p) {
  Schedule s(p);
  Range known = input(0, 1);
  for (int distance = 1; distance < p.size; distance *= 2) {
    const Range more = s.scratch(1);  // not `known` itself: overwriting it would wait for the send
    s.round();
    s.send(modulo(p.rank + distance, p.size), known);
    s.recv_reduce(modulo(p.rank - distance, p.size), known, more);
    known = more;
  }
  s.copy(known, output(0, 1));
  return s;
}

}  // namespace chorale::barrier
