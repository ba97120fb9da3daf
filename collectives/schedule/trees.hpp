// Builds two binary trees over the same ranks so that no rank is an inner node of both trees (Sanders, Speck and Träff
// 2009). The nodes of a tree are numbered from left to right; inner nodes have odd numbers. Rank k is node k of tree 0 and
// node k+1 of tree 1. The last rank is node 0 of tree 1. Thus a rank that is an inner node of one tree is a leaf of the
// other tree. Each tree transfers half of the vector. Thus in an all-reduce, every rank sends and receives at most the data
// of two vectors, for any number of ranks.
//
//   6 nodes        3                 as ranks, tree 0   3            tree 1   2
//                 ┌─┴─┐                                ┌─┴─┐                 ┌─┴─┐
//                 1   5                                1   5                 0   4
//                ┌┴┐ ┌┘                               ┌┴┐ ┌┘                ┌┴┐ ┌┘
//                0 2 4                                0 2 4                 5 1 3
#pragma once
#include <functional>

#include <chorale/schedule.hpp>

namespace chorale {

struct TreeNode {
  int parent = -1;            // −1: the tree's root
  std::vector<int> children;  // up to two
};

// Returns the parent and children of `rank` in tree 0 or 1 over `size` ranks.
TreeNode in_tree(int tree, int rank, int size);
// Returns the parent and children of p.rank in tree 0 or 1 over all ranks except p.root. The parent of both tree roots is
// p.root.
TreeNode in_tree_below_root(int tree, const Problem& p);

// Returns the first (0) or the second (1) half of a vector.
inline Range half_of(Range whole, int half) {
  const std::int64_t middle = whole.count / 2;
  return half == 0 ? Range{whole.place, whole.first, middle}
                   : Range{whole.place, whole.first + middle, whole.count - middle};
}

// tree_reduce sums the ranges `own` of all ranks up the tree. Every inner node stores its sum in the range that sum()
// returns on that rank; the root's sum is the result. tree_broadcast copies the root's range `what` to the range `what` of
// all ranks.
void tree_reduce(Schedule& s, const TreeNode& node, Range own, const std::function<Range()>& sum);
void tree_broadcast(Schedule& s, const TreeNode& node, Range what);

}  // namespace chorale
