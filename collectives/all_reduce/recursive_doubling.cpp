// Recursive doubling all-reduce: in round k, two ranks at distance 2^k exchange their complete vectors and add them. If the
// number of ranks p is a power of two, the algorithm takes log₂ p rounds. The algorithm works well for small vectors. If p
// is not a power of two, the first 2·(p − 2^⌊log₂ p⌋) ranks form pairs. Only the odd rank of a pair participates in the
// ⌊log₂ p⌋ rounds. Distances are then counted among the participating ranks. There are two more rounds for the pairs. In the
// first round (fold), the even rank of a pair sends its vector to the odd rank, which adds the received vector to its own
// vector. In the last round (unfold), the odd rank sends the result back.
//
//   p = 6    fold 0→1, 2→3     1↔3, 4↔5     1↔4, 3↔5     unfold 1→0, 3→2
#include "collectives/schedule/recursive_halving.hpp"

namespace chorale::all_reduce {

Schedule recursive_doubling(const Problem& p) {
  Schedule s(p);
  const std::int64_t n = p.blocks.total();
  const Range whole = output(0, n);
  const RecursiveHalving places(p);

  Range have = input(0, n);
  if (places.folded_away()) {
    s.round();
    s.send(p.rank + 1, have);
    s.recv(p.rank + 1, whole);
    return s;
  }
  if (places.in_a_pair()) {
    const Range sum = s.scratch(n);
    s.round();
    s.recv_reduce(p.rank - 1, have, sum);
    have = sum;
  }
  for (int bit = 1; bit < places.count(); bit *= 2) {
    // The sum and the vector being sent need different buffers. If the sum overwrote the vector being sent, both partners
    // would have to finish their sends before they could receive, and no send would complete.
    const bool may_end = 2 * bit == places.count() && !(p.in_place && have.place == Place::input);
    const Range sum = may_end ? whole : s.scratch(n);
    const int partner = places.rank_of(places.place() ^ bit);
    s.round();
    s.send(partner, have);
    s.recv_reduce(partner, have, sum);
    have = sum;
  }
  s.copy(have, whole);
  if (places.in_a_pair()) {
    s.round();
    s.send(p.rank - 1, whole);
  }
  return s;
}

}  // namespace chorale::all_reduce
