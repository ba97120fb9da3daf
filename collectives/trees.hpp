// Two binary trees over the same ranks in which nobody works twice (Sanders, Speck and Träff 2009). Numbered in order, the inner nodes of
// a binary tree are those of odd number; the same tree with all ranks moved on by one has the others inside. Each tree carries half of
// the vector, so everybody sends and receives the whole of it about twice, however many ranks there are.
//
//   6 places        3                 as ranks, tree 0   3            tree 1   2
//                 ┌─┴─┐                                ┌─┴─┐                 ┌─┴─┐
//                 1   5                                1   5                 0   4
//                ┌┴┐ ┌┘                               ┌┴┐ ┌┘                ┌┴┐ ┌┘
//                0 2 4                                0 2 4                 5 1 3
#pragma once
#include <functional>

#include "collectives/schedule.hpp"

namespace chorale {

struct TreeNode {
  int parent = -1;            // −1: the tree's root
  std::vector<int> children;  // up to two
};

// A rank's place in tree 0 or 1 of `size` ranks.
TreeNode in_tree(int tree, int rank, int size);
// The same where the problem's root stands above both trees, and they are made of the others.
TreeNode in_tree_below_root(int tree, const Problem& p);

// One half of a vector, the first or the second.
inline Range half_of(Range whole, int half) {
  const std::int64_t middle = whole.count / 2;
  return half == 0 ? Range{whole.place, whole.first, middle}
                   : Range{whole.place, whole.first + middle, whole.count - middle};
}

// From everybody's `own` up to the root, where it ends in sum(); inner nodes keep their partial sums there too. And down again.
void tree_reduce(Schedule& s, const TreeNode& node, Range own, const std::function<Range()>& sum);
void tree_broadcast(Schedule& s, const TreeNode& node, Range what);

}  // namespace chorale
