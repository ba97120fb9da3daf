// Circulant all-gather: the circulant reduce-scatter in reverse. Before a round with skip s, rank r has blocks r … r+s−1. In
// this round, rank r sends up to s of its first blocks to rank r−s, and receives blocks r+s, r+s+1, … from rank r+s. The
// algorithm takes ⌈log₂ p⌉ rounds for p ranks; each rank sends (p−1)/p of the vector.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void circulant_all_gather(Schedule& s, const Home& home) {
  const Problem& p = s.problem();
  std::vector<int> skips;
  for (int left = p.size; left > 1; left = (left + 1) / 2) skips.push_back((left + 1) / 2);
  for (std::size_t k = skips.size(); k-- > 0;) {
    const int skip = skips[k], moved = (k == 0 ? p.size : skips[k - 1]) - skip;
    s.round();
    for (const Range& piece : around(home, p.size, p.rank, moved)) s.send(modulo(p.rank - skip, p.size), piece);
    for (const Range& piece : around(home, p.size, p.rank + skip, moved)) s.recv(modulo(p.rank + skip, p.size), piece);
  }
}

namespace all_gather {

Schedule circulant(const Problem& p) {
  Schedule s(p);
  s.copy(input(0, p.blocks.count(p.rank)), in_output(p)(p.rank));
  circulant_all_gather(s, in_output(p));
  return s;
}

}  // namespace all_gather
}  // namespace chorale
