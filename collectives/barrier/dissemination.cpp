// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k each rank tells the one 2^k after it of all arrivals that it knows
// of. ⌈log₂ p⌉ rounds for any p; around the end some arrivals are told twice, which does no harm.
#include "collectives/phases.hpp"

namespace chorale::barrier {

Schedule dissemination(const Problem& p) {
  Schedule s(p);
  Range known = input(0, 1);
  for (int distance = 1; distance < p.size; distance *= 2) {
    const Range more = s.scratch(1);  // not where `known` is still being sent from: all would wait for one another
    s.round();
    s.send(modulo(p.rank + distance, p.size), known);
    s.recv_reduce(modulo(p.rank - distance, p.size), known, more);
    known = more;
  }
  s.copy(known, output(0, 1));
  return s;
}

}  // namespace chorale::barrier
