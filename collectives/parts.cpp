#include "collectives/parts.hpp"

namespace chorale {

Home outgoing(Schedule& s) {
  const Problem& p = s.problem();
  if (!p.in_place) return in_input(p);
  const Home aside = in_scratch(s);
  s.copy(input(0, p.blocks.total()), {Place::scratch, aside(0).first, p.blocks.total()});
  return aside;
}

void keep_own_block(Schedule& s, const Home& given) {
  const Problem& p = s.problem();
  const bool there_already = p.in_place && p.blocks.first(p.rank) == p.taken.first(p.rank);
  if (!there_already) s.copy(given(p.rank), in_taken(p)(p.rank));
}

std::vector<Range> around(const Home& home, int size, int first, int count) {
  std::vector<Range> pieces;
  for (int b = first % size, left = count; left > 0; b = 0) {
    const int here = std::min(left, size - b);
    Range piece = home(b);
    for (int i = 1; i < here; ++i) piece.count += home(b + i).count;
    pieces.push_back(piece);
    left -= here;
  }
  return pieces;
}

}  // namespace chorale
