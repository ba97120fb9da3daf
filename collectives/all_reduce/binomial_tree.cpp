// Tree all-reduce: a binomial reduce to rank 0, then a binomial broadcast. The algorithm takes 2⌈log₂ p⌉ rounds for p ranks,
// and every message is a complete vector. Tree all-reduce is simple and works well for small vectors. As a barrier, this is
// the algorithm with the fewest messages, 2(p−1).
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  const Range whole = output(0, p.blocks.total());
  binomial_reduce(s, 0, input(0, whole.count), [&] { return whole; });
  binomial_broadcast(s, 0, whole);
  return s;
}

}  // namespace chorale::all_reduce
