#include "collectives/schedule/trees.hpp"

namespace chorale {
namespace {

// Returns the root of the subtree that consists of the nodes in [`first`, `end`), where `first` is even. The root has an odd
// number near the middle. So the left part of the subtree has odd size, and the right part begins with an even number again.
// The tree's depth is ⌊log₂ size⌋.
int middle(int first, int end) { return end - first == 1 ? first : first + (((end - first) / 2) | 1); }

}  // namespace

TreeNode in_tree(int tree, int rank, int size) {
  const auto rank_at = [&](int place) { return modulo(place - tree, size); };
  const int place = modulo(rank + tree, size);
  TreeNode node;
  int first = 0, end = size, top = middle(first, end);
  while (top != place) {  // descend until the subtree's root is this rank's node (`place`)
    node.parent = rank_at(top);
    (place < top ? end : first) = place < top ? top : top + 1;
    top = middle(first, end);
  }
  if (first < top) node.children.push_back(rank_at(middle(first, top)));
  if (top + 1 < end) node.children.push_back(rank_at(middle(top + 1, end)));
  return node;
}

TreeNode in_tree_below_root(int tree, const Problem& p) {
  const int others = p.size - 1;
  const auto rank_of = [&](int other) { return modulo(p.root + 1 + other, p.size); };
  if (others == 0) return {};
  if (p.rank == p.root) return {-1, {rank_of(modulo(middle(0, others) - tree, others))}};
  TreeNode node = in_tree(tree, modulo(p.rank - p.root - 1, p.size), others);
  node.parent = node.parent < 0 ? p.root : rank_of(node.parent);
  for (int& child : node.children) child = rank_of(child);
  return node;
}

void tree_reduce(Schedule& s, const TreeNode& node, Range own, const std::function<Range()>& sum) {
  Range have = own;
  s.round();
  if (!node.children.empty()) {
    have = sum();
    s.recv_reduce(node.children, own, have);
  }
  s.round();
  if (node.parent >= 0) s.send(node.parent, have);
}

void tree_broadcast(Schedule& s, const TreeNode& node, Range what) {
  s.round();
  if (node.parent >= 0) s.recv(node.parent, what);
  s.round();
  if (!node.children.empty()) s.send(node.children, what);
}

}  // namespace chorale
