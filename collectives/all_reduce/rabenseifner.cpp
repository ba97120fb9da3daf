// Rabenseifner's all-reduce (2004): recursive halving, then recursive doubling (recursive_halving.hpp). For p ranks, where p
// is a power of two, the algorithm takes 2 log₂ p rounds; each rank sends 2(p−1)/p times the vector's size. If p is not a
// power of two, some ranks are folded into pairs. Before the halving, the even rank of a pair sends its complete vector to
// the odd rank. After the doubling, the odd rank sends the complete result back.
#include "collectives/schedule/recursive_halving.hpp"

namespace chorale::all_reduce {

Schedule rabenseifner(const Problem& p) {
  Schedule s(p);
  const Range whole = output(0, p.blocks.total());
  const RecursiveHalving halving(p);
  if (p.size == 1) {
    s.copy(input(0, whole.count), whole);
  } else if (halving.folded_away()) {
    s.send(p.rank + 1, input(0, whole.count));
    s.recv(p.rank + 1, whole);
  } else {
    halving.reduce_scatter(s, in_output(p));
    halving.all_gather(s, in_output(p));
    s.round();
    if (halving.in_a_pair()) s.send(p.rank - 1, whole);
  }
  return s;
}

}  // namespace chorale::all_reduce
