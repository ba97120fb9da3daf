// Circulant reduce-scatter (Träff 2023): recursive halving for any number of ranks p. Rank r numbers the blocks of the
// vector relative to its own block: rank r's block i is block r+i of the vector. A rank begins with p blocks. In each round,
// rank r keeps the first half of its blocks, rounded up to s blocks. Rank r sends the remaining blocks to rank r+s, where
// these blocks have the numbers 0, 1 and so on. The algorithm takes ⌈log₂ p⌉ rounds; each rank sends (p−1)/p of the vector.
//
//   p = 5    send blocks 3,4 to r+3     send block 2 to r+2     send block 1 to r+1     block 0, the own block, is complete
#include "collectives/schedule/phases.hpp"

namespace chorale {

void circulant_reduce_scatter(Schedule& s, const Home& own, const Home& home) {
  const Problem& p = s.problem();
  // `summed[i]` says whether the range `home` of block i already holds a partial sum. The values are equal on all ranks.
  std::vector<bool> summed(static_cast<std::size_t>(p.size), false);
  const auto is_summed = [&](int i) -> bool { return summed[static_cast<std::size_t>(i)]; };
  for (int left = p.size; left > 1;) {
    const int skip = (left + 1) / 2, moved = left - skip;
    const int to = modulo(p.rank + skip, p.size), from = modulo(p.rank - skip, p.size);
    s.round();
    // Consecutive blocks are sent in one message if two conditions hold: all blocks are in the same buffer of the sender
    // (input or home), and the receiver adds all blocks to the same buffer.
    for (int i = 0; i < moved;) {
      int end = i + 1;
      while (end < moved && is_summed(skip + end) == is_summed(skip + i) && is_summed(end) == is_summed(i)) ++end;
      for (const Range& piece : around(is_summed(skip + i) ? home : own, p.size, to + i, end - i)) s.send(to, piece);
      const auto ours = around(is_summed(i) ? home : own, p.size, p.rank + i, end - i);
      const auto into = around(home, p.size, p.rank + i, end - i);
      for (std::size_t k = 0; k < into.size(); ++k) s.recv_reduce(from, ours[k], into[k]);
      i = end;
    }
    for (int i = 0; i < moved; ++i) summed[static_cast<std::size_t>(i)] = true;
    left = skip;
  }
  if (p.size == 1) s.copy(own(0), home(0));
}

namespace reduce_scatter {

Schedule circulant(const Problem& p) {
  Schedule s(p);
  const Home partial = in_scratch(s);
  circulant_reduce_scatter(s, in_input(p), partial);
  s.copy(partial(p.rank), output(0, p.blocks.count(p.rank)));
  return s;
}

}  // namespace reduce_scatter
}  // namespace chorale
