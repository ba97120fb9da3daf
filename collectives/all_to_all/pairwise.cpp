// Pairwise all-to-all: in round k, each of the p ranks sends to the rank k ahead and receives from the rank k behind. The
// algorithm takes p−1 rounds. A rank begins a round only after it has completed the previous round. So no rank receives from
// two ranks at the same time. Pairwise all-to-all works well for large blocks.
#include "collectives/schedule/phases.hpp"

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
