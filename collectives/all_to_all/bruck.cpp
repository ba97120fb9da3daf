// Bruck's all-to-all (1997). Let i be a block's distance, which is the number of ranks from the block's origin to its
// destination. For each bit k that is set in i, the block is forwarded once, to the rank 2^k ahead. So in round k, a rank
// sends one message to the rank 2^k ahead. The message contains all blocks with bit k set in their distance. The algorithm
// takes ⌈log₂ p⌉ rounds for p ranks, with about p/2 blocks per message. Bruck's algorithm works well for small blocks. All
// blocks must have the same size, because a rank forwards blocks of other ranks and does not know their sizes.
//
//   p = 4, the path of rank 0's blocks    i = 1: to rank 1      i = 2: to rank 2      i = 3: to rank 1, then to rank 3
#include "collectives/schedule/phases.hpp"

namespace chorale::all_to_all {

// Whether all blocks have the same size. A rank knows only the sizes of the blocks that it sends and receives. The
// communicator ensures that this function returns the same result on all ranks.
bool equal_blocks(const Problem& p) {
  for (int b = 0; b < p.size; ++b)
    if (p.blocks.count(b) != p.blocks.count(0) || p.taken.count(b) != p.blocks.count(0)) return false;
  return true;
}

Schedule bruck(const Problem& p) {
  Schedule s(p);
  const std::int64_t count = p.blocks.count(0);
  const Home given = in_input(p), taken = in_taken(p);
  std::vector<Range> at;  // `at[i]` is the current range of the block whose destination is i ranks ahead of its origin
  for (int i = 0; i < p.size; ++i) at.push_back(given(modulo(p.rank + i, p.size)));
  for (int bit = 1; bit < p.size; bit *= 2) {
    std::vector<std::size_t> moved;
    for (int i = bit; i < p.size; ++i)
      if (i & bit) moved.push_back(static_cast<std::size_t>(i));
    Range goes = s.scratch(count * static_cast<std::int64_t>(moved.size())), comes = s.scratch(goes.count);
    s.round();
    for (std::size_t m = 0; m < moved.size(); ++m) {
      const std::int64_t offset = count * static_cast<std::int64_t>(m);
      s.copy(at[moved[m]], {Place::scratch, goes.first + offset, count});
      at[moved[m]] = {Place::scratch, comes.first + offset, count};
    }
    s.send(modulo(p.rank + bit, p.size), goes);
    s.recv(modulo(p.rank - bit, p.size), comes);
  }
  for (int i = 0; i < p.size; ++i) s.copy(at[static_cast<std::size_t>(i)], taken(modulo(p.rank - i, p.size)));
  return s;
}

}  // namespace chorale::all_to_all
