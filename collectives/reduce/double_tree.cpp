// Double tree reduce: the double tree broadcast in reverse. There are two trees over all ranks except the root (trees.hpp).
// Each tree sums one half of the vector. The root adds its own vector to the results of both trees.
#include "collectives/schedule/trees.hpp"

namespace chorale::reduce {

Schedule double_tree(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.total());
  if (p.size == 1) s.copy(own, output(0, own.count));
  for (const int tree : {0, 1}) {
    const Range half = half_of(own, tree), sum = half_of(output(0, own.count), tree);
    tree_reduce(s, in_tree_below_root(tree, p), half, [&] { return p.rank == p.root ? sum : s.scratch(half.count); });
  }
  return s;
}

}  // namespace chorale::reduce
