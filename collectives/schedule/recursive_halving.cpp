#include "collectives/schedule/recursive_halving.hpp"

namespace chorale {

void RecursiveHalving::reduce_scatter(Schedule& s, const Home& home) const {
  Home have = in_input(p_);
  if (in_a_pair()) {
    s.round();
    s.recv_reduce(p_.rank - 1, places(have, 0, power_), places(home, 0, power_));
    have = home;
  }
  int first = 0;
  // When an iteration begins, this place handles the blocks of 2·`half` places, from place `first` on.
  for (int half = power_ / 2; half >= 1; half /= 2) {
    const int partner = rank_of(place() ^ half);
    const int keep = place() & half ? first + half : first, give = place() & half ? first : first + half;
    s.round();
    s.send(partner, places(have, give, half));
    s.recv_reduce(partner, places(have, keep, half), places(home, keep, half));
    have = home;
    first = keep;
  }
}

void RecursiveHalving::all_gather(Schedule& s, const Home& home) const {
  for (int half = 1; half < power_; half *= 2) {
    const int partner = rank_of(place() ^ half);
    const int mine = place() & ~(half - 1), theirs = mine ^ half;
    s.round();
    s.send(partner, places(home, mine, half));
    s.recv(partner, places(home, theirs, half));
  }
}

}  // namespace chorale
