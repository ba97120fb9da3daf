// Tree all-reduce: a binomial reduce to rank 0, then a binomial broadcast. The algorithm takes 2⌈log₂ p⌉ rounds for p ranks,
// and every message is a complete vector. Tree all-reduce is simple and works well for small vectors.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void binomial_all_reduce(Schedule& s) {
  const Range whole = output(0, s.problem().blocks.total());
  binomial_reduce(s, 0, input(0, whole.count), [&] { return whole; });
  binomial_broadcast(s, 0, whole);
}

namespace all_reduce {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  binomial_all_reduce(s);
  return s;
}

}  // namespace all_reduce
}  // namespace chorale
