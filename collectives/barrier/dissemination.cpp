// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k, each rank sends a message to the rank 2^k ahead. The
// message says which ranks are known to have arrived. The barrier takes ⌈log₂ p⌉ rounds for any number of ranks p. A rank
// can learn of the same arrival twice, which is harmless.
#include "collectives/schedule/phases.hpp"

namespace chorale::barrier {

Schedule dissemination(const Problem& p) {
  Schedule s(p);
  Range known = input(0, 1);
  for (int distance = 1; distance < p.size; distance *= 2) {
    const Range more = s.scratch(1);  // a separate element, because overwriting `known` would have to wait for the send
    s.round();
    s.send(modulo(p.rank + distance, p.size), known);
    s.recv_reduce(modulo(p.rank - distance, p.size), known, more);
    known = more;
  }
  s.copy(known, output(0, 1));
  return s;
}

}  // namespace chorale::barrier
