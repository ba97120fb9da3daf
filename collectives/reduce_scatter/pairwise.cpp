// Pairwise reduce-scatter: in round k, each of the p ranks sends its contribution to one block to that block's owner, the
// rank k ahead. Each rank also receives a contribution to its own block from the rank k behind, and adds this contribution
// to its partial sum. The algorithm takes p−1 rounds. A rank begins a round only after it has completed the previous round.
// So no rank receives from two ranks at the same time. Each rank sends (p−1)/p of the vector. Partial sums need no memory
// except the output. The algorithm works well for large vectors.
//
//   p = 3        rank 0 sends     rank 1 sends     rank 2 sends      the sums, where r0 is rank 0's contribution
//   round 1      block 1 to 1     block 2 to 2     block 0 to 0      block 0 = (r0 + r2) + r1
//   round 2      block 2 to 2     block 0 to 0     block 1 to 1      block 1 = (r0 + r1) + r2
#include "collectives/schedule/phases.hpp"

namespace chorale::reduce_scatter {

Schedule pairwise(const Problem& p) {
  Schedule s(p);
  const Home own = in_input(p);
  const Range sum = output(0, p.blocks.count(p.rank));
  for (int k = 1; k < p.size; ++k) {
    if (k > 1) s.wait_for_all();
    s.round();
    const int after = modulo(p.rank + k, p.size), before = modulo(p.rank - k, p.size);
    s.send(after, own(after));
    s.recv_reduce(before, k == 1 ? own(p.rank) : sum, sum);
  }
  if (p.size == 1) s.copy(own(0), sum);
  return s;
}

}  // namespace chorale::reduce_scatter
