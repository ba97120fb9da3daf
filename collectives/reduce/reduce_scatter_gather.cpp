// Reduce-scatter and gather: each rank sums a block (circulant), a binomial tree collects them at the root. About twice the vector a
// rank instead of log₂ p times: for long vectors.
#include "collectives/phases.hpp"

namespace chorale::reduce {

Schedule reduce_scatter_gather(const Problem& p) {
  Schedule s(p);
  const Home home = p.rank == p.root ? in_output(p) : in_scratch(s);
  circulant_reduce_scatter(s, home);
  binomial_gather(s, p.root, home);
  return s;
}

}  // namespace chorale::reduce
