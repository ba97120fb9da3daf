// Sums as trees over the ranks' contributions, equal ones kept once: two are the same bits exactly when their numbers are equal.
//
//   Expressions sums;
//   const int a = sums.sum({sums.leaf(0), sums.leaf(1)}), b = sums.sum({a, sums.leaf(2)});
//   sums.text(b)     "((r0 + r1) + r2)"
//
// x + y and y + x have the same bits (but for the payload of a NaN), so the term with the lowest rank is written first. A sum of
// several terms goes from left to right: its types of 16 bits are rounded once at the end, all others after every addition.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace chorale {

enum class Rounding { once_a_step, every_addition };

class Expressions {
 public:
  explicit Expressions(Rounding rounding = Rounding::once_a_step) : rounding_(rounding) {}

  int leaf(int rank);
  int sum(std::vector<int> terms);

  std::vector<int> ranks(int expression) const;  // whose contributions, in the order in which they are written
  std::string text(int expression) const;
  bool in_rank_order(int expression) const;  // what one rank would get by adding one vector after another

 private:
  struct Node {
    int rank = -1;           // of a leaf; of a sum the lowest
    std::vector<int> terms;  // none: a leaf
    bool operator<(const Node& other) const { return std::tie(rank, terms) < std::tie(other.rank, other.terms); }
  };
  int number(Node node);
  const Node& node(int expression) const { return nodes_.at(static_cast<std::size_t>(expression)); }

  Rounding rounding_;
  std::vector<Node> nodes_;
  std::map<Node, int> numbers_;
};

}  // namespace chorale
