// Direct all-gather: each rank sends its block to all other ranks simultaneously. The algorithm takes one round; each of the
// p ranks sends (p−1)/p of the vector, in p−1 messages.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void direct_all_gather(Schedule& s, Range own, const Home& home) {
  const Problem& p = s.problem();
  const std::vector<int> others = others_from(p.rank, p.size);
  s.round();
  if (!others.empty()) s.send(others, own);
  for (const int peer : others) s.recv(peer, home(peer));
}

namespace all_gather {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.count(p.rank));
  s.copy(own, in_output(p)(p.rank));
  direct_all_gather(s, own, in_output(p));
  return s;
}

}  // namespace all_gather
}  // namespace chorale
