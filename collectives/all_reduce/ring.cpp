// Ring all-reduce: a reduce-scatter ring, then an all-gather ring (Patarasuk & Yuan 2009). Takes 2(p−1) rounds for p ranks;
// each rank sends 2(p−1)/p times the vector's size, only to the next rank. Partial sums are kept in the output.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule ring(const Problem& p) {
  Schedule s(p);
  ring_reduce_scatter(s, in_output(p));
  ring_all_gather(s, in_output(p)(p.rank), in_output(p));
  return s;
}

}  // namespace chorale::all_reduce
