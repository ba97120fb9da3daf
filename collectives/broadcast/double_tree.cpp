// Double tree broadcast (Sanders, Speck and Träff 2009): the root sends one half of the vector down each of two trees
// (trees.hpp). Each tree spans all other ranks. A rank that forwards one half is a leaf in the tree of the other half. The
// algorithm takes about 2⌊log₂ p⌋ rounds for p ranks. No rank sends more than one vector. If the vector is split into chunks
// (chunking.hpp), the algorithm keeps all links busy.
#include "collectives/schedule/trees.hpp"

namespace chorale::broadcast {

Schedule double_tree(const Problem& p) {
  Schedule s(p);
  const std::int64_t n = p.blocks.total();
  const Range have = p.rank == p.root ? input(0, n) : output(0, n);
  for (const int tree : {0, 1}) tree_broadcast(s, in_tree_below_root(tree, p), half_of(have, tree));
  if (p.rank == p.root) s.copy(have, output(0, n));
  return s;
}

}  // namespace chorale::broadcast
