#include "collectives/analysis/reduction_order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/analysis/symbolic_run.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// For one element of the complete vector, maps each final expression to the ranks that hold this expression.
using Holders = std::map<int, std::vector<int>>;  // expression → ranks

std::map<std::int64_t, Holders> holders_of(const std::vector<Schedule>& ranks, Expressions& sums) {
  std::map<std::int64_t, Holders> holders;
  const auto orders = reduction_order(ranks, sums);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t i = 0; i < orders[r].size(); ++i)
      if (orders[r][i] >= 0 && sums.ranks(orders[r][i]).size() > 1)
        holders[ranks[r].problem().output_home() + static_cast<std::int64_t>(i)][orders[r][i]].push_back(
            static_cast<int>(r));
  return holders;
}

std::string words_for(const Holders& holders, const Expressions& sums) {
  std::vector<std::string> parts;
  for (const auto& [expression, on] : holders)
    parts.push_back(sums.text(expression) + (sums.in_rank_order(expression) ? ", in rank order" : "") +
                    (holders.size() > 1 ? fmt::format(" on rank{} {}", on.size() > 1 ? "s" : "", fmt::join(on, ", ")) : ""));
  return join(parts, "; ");
}

}  // namespace

std::vector<std::vector<int>> reduction_order(const std::vector<Schedule>& ranks, Expressions& sums) {
  SymbolicRun run(ranks, sums);
  while (run.round() < run.rounds().count) run.next_round();
  std::vector<std::vector<int>> orders;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    orders.emplace_back();
    for (std::int64_t i = 0; i < run.count(rank, Place::output); ++i)
      orders.back().push_back(run.at(rank, Place::output, i).sum);
  }
  return orders;
}

std::vector<std::vector<const Algorithm*>> bitwise_classes(const Problem& problem, Rounding rounding) {
  Expressions sums(rounding);
  std::vector<std::vector<std::vector<int>>> orders;
  std::vector<std::vector<const Algorithm*>> classes;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != problem.what || !fits(algorithm, problem)) continue;
    const auto order = reduction_order(plan_all_ranks(algorithm, problem), sums);
    const auto known = std::find(orders.begin(), orders.end(), order);
    const auto which = static_cast<std::size_t>(known - orders.begin());
    if (known == orders.end()) {
      orders.push_back(order);
      classes.emplace_back();
    }
    classes[which].push_back(&algorithm);
  }
  return classes;
}

std::string describe_reduction_order(const std::vector<Schedule>& ranks, std::size_t most_lines) {
  if (ranks.at(0).problem().what == Collective::barrier) return "";  // a barrier sums tokens, not values
  Expressions sums;
  const auto holders = holders_of(ranks, sums);
  std::string text;
  std::size_t lines = 0, left_out = 0;
  for (auto at = holders.begin(); at != holders.end();) {
    auto end = at;
    while (end != holders.end() && end->second == at->second) ++end;
    const std::int64_t first = at->first, last = std::prev(end)->first;
    if (lines++ < most_lines)
      text +=
          fmt::format("  {:<9} {}\n", first == last ? fmt::format("[{}]", first) : fmt::format("[{}..{})", first, last + 1),
                      words_for(at->second, sums));
    else
      left_out += static_cast<std::size_t>(std::distance(at, end));
    at = end;
  }
  if (left_out > 0) text += fmt::format("  … and {} more elements\n", left_out);
  return text;
}

}  // namespace chorale
