// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k each rank sends all arrivals it knows of to the rank
// 2^k ahead. ⌈log₂ p⌉ rounds for any p. Some arrivals are reported twice, which does no harm.
#include "collectives/phases.hpp"

namespace chorale::barrier {

Schedule dissemination(const Problem& p) {
  Schedule s(p);
  Range known = input(0, 1);
  for (int distance = 1; distance < p.size; distance *= 2) {
    const Range more = s.scratch(1);  // must not overwrite `known` while it is sent, or all ranks would wait
    s.round();
    s.send(modulo(p.rank + distance, p.size), known);
    s.recv_reduce(modulo(p.rank - distance, p.size), known, more);
    known = more;
  }
  s.copy(known, output(0, 1));
  return s;
}

}  // namespace chorale::barrier
