// Ring reduce-scatter: partial sums are forwarded once around the ring, and each rank adds its contribution to every partial
// sum. The algorithm takes p−1 rounds for p ranks; each rank sends (p−1)/p of the vector.
//
//   p = 3        rank 0         rank 1         rank 2
//   round 1      sends block 2  sends block 0  sends block 1      to the next rank
//   round 2      sends block 1  sends block 2  sends block 0      then each rank has the complete sum of its own block
#include "collectives/schedule/phases.hpp"

namespace chorale {

void ring_reduce_scatter(Schedule& s, const Home& home) {
  const Problem& p = s.problem();
  const Home own = in_input(p);
  const int next = modulo(p.rank + 1, p.size), previous = modulo(p.rank - 1, p.size);
  for (int k = 1; k < p.size; ++k) {
    s.round();
    const int leaves = modulo(p.rank - k, p.size), comes = modulo(p.rank - k - 1, p.size);
    s.send(next, k == 1 ? own(leaves) : home(leaves));
    s.recv_reduce(previous, own(comes), home(comes));
  }
  if (p.size == 1) s.copy(own(0), home(0));
}

namespace reduce_scatter {

Schedule ring(const Problem& p) {
  Schedule s(p);
  std::vector<Range> partial;
  for (int b = 0; b < p.size; ++b)
    partial.push_back(b == p.rank ? output(0, p.blocks.count(b)) : s.scratch(p.blocks.count(b)));
  ring_reduce_scatter(s, [&](int b) { return partial[static_cast<std::size_t>(b)]; });
  return s;
}

}  // namespace reduce_scatter
}  // namespace chorale
