#include "collectives/analysis/expressions.hpp"

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

int Expressions::leaf(int rank) { return number({rank, {}}); }

int Expressions::sum(std::vector<int> terms) {
  require(!terms.empty(), "a sum needs at least one term");
  if (terms.size() == 1) return terms[0];
  if (rounding_ == Rounding::every_addition && terms.size() > 2) {
    int total = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) total = sum({total, terms[i]});
    return total;
  }
  if (node(terms[1]).rank < node(terms[0]).rank) std::swap(terms[0], terms[1]);
  int lowest = node(terms[0]).rank;
  for (const int term : terms) lowest = std::min(lowest, node(term).rank);
  return number({lowest, std::move(terms)});
}

int Expressions::number(Node node) {
  const auto [place, is_new] = numbers_.emplace(node, static_cast<int>(nodes_.size()));
  if (is_new) nodes_.push_back(std::move(node));
  return place->second;
}

std::vector<int> Expressions::ranks(int expression) const {
  if (node(expression).terms.empty()) return {node(expression).rank};
  std::vector<int> all;
  for (const int term : node(expression).terms) {
    const std::vector<int> some = ranks(term);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string Expressions::text(int expression) const {
  if (node(expression).terms.empty()) return "r" + std::to_string(node(expression).rank);
  std::vector<std::string> words;
  for (const int term : node(expression).terms) words.push_back(text(term));
  return "(" + join(words, " + ") + ")";
}

bool Expressions::in_rank_order(int expression) const {
  const std::vector<int> order = ranks(expression);
  if (!std::is_sorted(order.begin(), order.end())) return false;
  for (; !node(expression).terms.empty(); expression = node(expression).terms[0]) {
    const auto& terms = node(expression).terms;
    if (std::any_of(terms.begin() + 1, terms.end(), [&](int term) { return !node(term).terms.empty(); })) return false;
  }
  return true;
}

}  // namespace chorale
