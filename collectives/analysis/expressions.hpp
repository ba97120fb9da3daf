// Represents sums as trees whose leaves are the contributions of ranks. Each tree has a number, and equal trees have equal
// numbers. Two sums are bit-identical for all values if and only if their trees have the same number.
//
//   Expressions sums;
//   const int a = sums.sum({sums.leaf(0), sums.leaf(1)}), b = sums.sum({a, sums.leaf(2)});
//   sums.text(b)     "((r0 + r1) + r2)"
//
// x + y and y + x are bit-identical, except for the payload of a NaN. So the first two terms of a sum are sorted by their
// lowest rank. A sum of several terms is computed from left to right. A sum of 16-bit values is rounded once, at the end.
// Sums of other types are rounded after every addition.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace chorale {

// Whether a sum of several terms is rounded once, or after every addition.
enum class Rounding { once_a_step, every_addition };

class Expressions {
 public:
  explicit Expressions(Rounding rounding = Rounding::once_a_step) : rounding_(rounding) {}

  int leaf(int rank);
  int sum(std::vector<int> terms);

  std::vector<int> ranks(int expression) const;  // the contributing ranks, in the order in which text() writes them
  std::string text(int expression) const;
  bool in_rank_order(int expression) const;  // whether the contributions are added one after another, in rank order

 private:
  struct Node {
    int rank = -1;           // the rank of a leaf; the lowest rank in a sum
    std::vector<int> terms;  // the terms of a sum; empty for a leaf
    bool operator<(const Node& other) const { return std::tie(rank, terms) < std::tie(other.rank, other.terms); }
  };
  int number(Node node);
  const Node& node(int expression) const { return nodes_.at(static_cast<std::size_t>(expression)); }

  Rounding rounding_;
  std::vector<Node> nodes_;
  std::map<Node, int> numbers_;
};

}  // namespace chorale
