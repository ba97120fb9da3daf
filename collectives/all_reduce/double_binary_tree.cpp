// Double binary tree all-reduce (Sanders, Speck and Träff 2009): each half of the vector has its own binary tree
// (trees.hpp). The half is reduced to the root of its tree, then broadcast down the same tree. An inner node of one tree is
// a leaf of the other tree. Each tree over p ranks has ⌊log₂ p⌋ levels below its root. An inner node receives up to two
// messages from its children, and later sends a message to each child. No rank sends more than twice the vector's size. If
// the vector is split into chunks (chunking.hpp), the algorithm keeps every link busy for any number of ranks p.
#include "collectives/schedule/trees.hpp"

namespace chorale::all_reduce {

Schedule double_binary_tree(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.total()), sum = output(0, own.count);
  if (p.size == 1) {
    s.copy(own, sum);
    return s;
  }
  for (const int tree : {0, 1})
    tree_reduce(s, in_tree(tree, p.rank, p.size), half_of(own, tree), [&] { return half_of(sum, tree); });
  for (const int tree : {0, 1}) tree_broadcast(s, in_tree(tree, p.rank, p.size), half_of(sum, tree));
  return s;
}

}  // namespace chorale::all_reduce
