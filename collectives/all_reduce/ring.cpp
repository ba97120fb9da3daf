// Ring all-reduce: a ring reduce-scatter, then a ring all-gather (Patarasuk & Yuan 2009). The algorithm takes 2(p−1) rounds
// for p ranks. Each rank sends 2(p−1)/p times the vector's size, and sends only to the next rank. Partial sums are stored in
// the output.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule ring(const Problem& p) {
  Schedule s(p);
  ring_reduce_scatter(s, in_output(p));
  ring_all_gather(s, in_output(p)(p.rank), in_output(p));
  return s;
}

}  // namespace chorale::all_reduce
