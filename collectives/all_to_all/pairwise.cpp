// Pairwise all-to-all: in round k each rank sends to the one k after it and receives from the one k before it. p−1 rounds, each begun when
// the one before is over, so that nobody is ever sent to by two ranks at once: for large blocks.
#include "collectives/phases.hpp"

namespace chorale::all_to_all {

Schedule pairwise(const Problem& p) {
  Schedule s(p);
  const Home given = outgoing(s), taken = in_taken(p);
  keep_own_block(s, given);
  for (int k = 1; k < p.size; ++k) {
    if (k > 1) s.wait_for_all();
    s.round();
    s.send(modulo(p.rank + k, p.size), given(modulo(p.rank + k, p.size)));
    s.recv(modulo(p.rank - k, p.size), taken(modulo(p.rank - k, p.size)));
  }
  return s;
}

}  // namespace chorale::all_to_all
