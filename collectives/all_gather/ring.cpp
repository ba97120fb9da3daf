// Ring all-gather: every block is forwarded once around the ring, and each rank keeps a copy. The algorithm takes p−1 rounds
// for p ranks; each rank sends (p−1)/p of the vector.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void ring_all_gather(Schedule& s, Range own, const Home& home) {
  const Problem& p = s.problem();
  const int next = modulo(p.rank + 1, p.size), previous = modulo(p.rank - 1, p.size);
  for (int k = 0; k < p.size - 1; ++k) {
    s.round();
    s.send(next, k == 0 ? own : home(modulo(p.rank - k, p.size)));
    s.recv(previous, home(modulo(p.rank - k - 1, p.size)));
  }
}

namespace all_gather {

Schedule ring(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.count(p.rank));
  s.copy(own, in_output(p)(p.rank));
  ring_all_gather(s, own, in_output(p));
  return s;
}

}  // namespace all_gather
}  // namespace chorale
