// Bruck's all-gather (1997). Before the round with distance d (d = 1, 2, 4, …), rank r has blocks r … r+d−1. In this round,
// rank r sends up to d blocks to rank r−d, and receives the same number of new blocks from rank r+d. The algorithm takes
// ⌈log₂ p⌉ rounds for any number of ranks p. Blocks are received at their final positions. So the vector needs no rotation
// at the end, unlike in Bruck's paper.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_gather {

Schedule bruck(const Problem& p) {
  Schedule s(p);
  const Home home = in_output(p);
  s.copy(input(0, p.blocks.count(p.rank)), home(p.rank));
  for (int distance = 1; distance < p.size; distance *= 2) {
    const int moved = std::min(distance, p.size - distance);
    s.round();
    for (const Range& piece : around(home, p.size, p.rank, moved)) s.send(modulo(p.rank - distance, p.size), piece);
    for (const Range& piece : around(home, p.size, p.rank + distance, moved))
      s.recv(modulo(p.rank + distance, p.size), piece);
  }
  return s;
}

}  // namespace chorale::all_gather
