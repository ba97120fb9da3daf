// Recursive doubling all-gather: in round k, two ranks at distance 2^k exchange all blocks that they have. The algorithm
// takes log₂ p rounds for p ranks, where p must be a power of two. Each rank sends (p−1)/p of the vector.
#include "collectives/schedule/recursive_halving.hpp"

namespace chorale::all_gather {

Schedule recursive_doubling(const Problem& p) {
  Schedule s(p);
  s.copy(input(0, p.blocks.count(p.rank)), in_output(p)(p.rank));
  RecursiveHalving(p).all_gather(s, in_output(p));
  return s;
}

}  // namespace chorale::all_gather
