// Reduce by reduce-scatter and gather: a circulant reduce-scatter sums one block on each rank, then a binomial gather
// collects the blocks at the root. No rank receives much more than twice the vector's size, whereas the root of a binomial
// reduce over p ranks receives ⌈log₂ p⌉ complete vectors. So this algorithm works well for long vectors.
#include "collectives/schedule/phases.hpp"

namespace chorale::reduce {

Schedule reduce_scatter_gather(const Problem& p) {
  Schedule s(p);
  const Home home = p.rank == p.root ? in_output(p) : in_scratch(s);
  circulant_reduce_scatter(s, in_input(p), home);
  binomial_gather(s, p.root, home);
  return s;
}

}  // namespace chorale::reduce
