// Recursive halving reduce-scatter: in each round, two ranks at distance p/2, p/4, …, 1 split their current blocks into two
// halves. Each of the two ranks sends one half, and adds the received half to the other half. If the number of ranks p is a
// power of two, the algorithm takes log₂ p rounds, and each rank sends (p−1)/p of the vector. If p is not a power of two,
// the first ranks form pairs, and there are two more rounds. At the start, the even rank of a pair sends its complete vector
// to the odd rank. At the end, the odd rank sends the even rank's block back.
#include "collectives/schedule/recursive_halving.hpp"

namespace chorale::reduce_scatter {

Schedule recursive_halving(const Problem& p) {
  Schedule s(p);
  const Range mine = output(0, p.blocks.count(p.rank));
  const RecursiveHalving halving(p);
  if (p.size == 1) {
    s.copy(input(0, mine.count), mine);
  } else if (halving.folded_away()) {
    s.send(p.rank + 1, input(0, p.blocks.total()));
    s.recv(p.rank + 1, mine);
  } else {
    const Home partial = in_scratch(s);
    halving.reduce_scatter(s, partial);
    s.round();
    if (halving.in_a_pair()) s.send(p.rank - 1, partial(p.rank - 1));
    s.copy(partial(p.rank), mine);
  }
  return s;
}

}  // namespace chorale::reduce_scatter
