// Direct all-to-all: each of the p ranks sends to all other ranks simultaneously. Each rank sends first to the next rank, so
// no two ranks send first to the same rank. The algorithm takes one round, with p−1 messages per rank.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_to_all {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const Home given = outgoing(s), taken = in_taken(p);
  s.round();
  for (int k = 1; k < p.size; ++k) s.send(modulo(p.rank + k, p.size), given(modulo(p.rank + k, p.size)));
  for (int k = 1; k < p.size; ++k) s.recv(modulo(p.rank - k, p.size), taken(modulo(p.rank - k, p.size)));
  keep_own_block(s, given);
  return s;
}

}  // namespace chorale::all_to_all
