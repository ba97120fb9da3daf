// Chain reduce: the chain broadcast in reverse. The p ranks act one after another, beginning with the rank farthest from the
// root. Each rank adds its own vector of n elements to the received sum, and sends the new sum to the next rank toward the
// root. Without chunks, the chain takes p−1 rounds, and a rank sends n elements per round. With k chunks (chunking.hpp), the
// chain takes p−2+k rounds, and a rank sends n/k elements per round.
#include "collectives/schedule/phases.hpp"

namespace chorale::reduce {

Schedule chain(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.total());
  const int place = modulo(p.rank - p.root, p.size), last = p.size - 1;
  if (p.size == 1) s.copy(own, output(0, own.count));
  Range have = own;
  for (int k = place + 1; k < last; ++k) s.round();
  if (place < last) {
    have = place == 0 ? output(0, own.count) : s.scratch(own.count);
    s.recv_reduce(modulo(p.rank + 1, p.size), own, have);
    s.round();
  }
  if (place > 0) s.send(modulo(p.rank - 1, p.size), have);
  return s;
}

}  // namespace chorale::reduce
