// Pairwise all-to-all: in round k each rank sends to the one k after it and receives from the one k before it. p−1 rounds, each begun when
// the one before is over, so that nobody is ever sent to by two ranks at once: for large blocks.
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

namespace all_to_all {

Schedule pairwise(const Problem& p) {
  Schedule s(p);
  const Home given = outgoing(s), taken = in_taken(p);
  keep_own_block(s, given);
  for (int k = 1; k < p.size; ++k) {
    if (k > 1) s.wait_for_all();
    s.round();
    s.send(modulo(p.rank + k, p.size), given(modulo(p.rank + k, p.size)));
    s.recv(modulo(p.rank - k, p.size), taken(modulo(p.rank - k, p.size)));
  }
  return s;
}

}  // namespace all_to_all
}  // namespace chorale
