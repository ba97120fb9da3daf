// Tree barrier: a binomial-tree all-reduce of one token. For p ranks, the barrier takes 2⌈log₂ p⌉ rounds, but only 2(p−1)
// messages in total.
#include "collectives/schedule/phases.hpp"

namespace chorale::barrier {

Schedule binomial_tree(const Problem& p) {
  Schedule s(p);
  binomial_all_reduce(s);
  return s;
}

}  // namespace chorale::barrier
