// Direct all-reduce: each of the p ranks receives its own block from all other ranks, sums the received blocks, and sends
// the sum to all other ranks. The algorithm takes two rounds; each rank sends 2(p−1)/p times the vector's size, in 2(p−1)
// messages. On mapped memory, each rank reads its block of every input and writes the sum to every output.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule direct(const Problem& p) {
  Schedule s(p);
  direct_reduce_scatter(s, in_output(p)(p.rank));
  direct_all_gather(s, in_output(p)(p.rank), in_output(p));
  return s;
}

}  // namespace chorale::all_reduce
