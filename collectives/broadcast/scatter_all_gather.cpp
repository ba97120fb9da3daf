// Scatter and all-gather broadcast (van de Geijn 1994): the root scatters the blocks of the vector down a binomial tree,
// then a ring all-gather distributes the blocks to all ranks. No rank sends much more than twice the vector's size, whereas
// the root of a binomial broadcast to p ranks sends the complete vector ⌈log₂ p⌉ times. So this algorithm works well for
// long vectors.
#include "collectives/schedule/phases.hpp"

namespace chorale::broadcast {

Schedule scatter_all_gather(const Problem& p) {
  Schedule s(p);
  const Home home = in_output(p);
  if (p.rank == p.root) s.copy(input(0, p.blocks.total()), output(0, p.blocks.total()));
  binomial_scatter(s, p.root, home);
  ring_all_gather(s, home(p.rank), home);
  return s;
}

}  // namespace chorale::broadcast
