// Chain broadcast: each of the p ranks sends the vector of n elements to the next rank. Without chunks, the chain takes p−1
// rounds, and a rank sends n elements per round. Chain broadcast is worthwhile only if the vector is split into k chunks
// (chunking.hpp). With k chunks, the chain takes p−2+k rounds, and a rank sends n/k elements per round. So the broadcast of
// a long vector takes little longer than one message of n elements.
#include "collectives/schedule/phases.hpp"

namespace chorale::broadcast {

Schedule chain(const Problem& p) {
  Schedule s(p);
  const int place = modulo(p.rank - p.root, p.size);
  const Range have = place == 0 ? input(0, p.blocks.total()) : output(0, p.blocks.total());
  for (int k = 1; k < place; ++k) s.round();
  if (place > 0) s.recv(modulo(p.rank - 1, p.size), have);
  if (place > 0) s.round();
  if (place + 1 < p.size) s.send(modulo(p.rank + 1, p.size), have);
  if (place == 0) s.copy(have, output(0, have.count));
  return s;
}

}  // namespace chorale::broadcast
