#include "experiments/plan/expert_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layers/layers.hpp"
#include "src/math/forced_routing.hpp"
#include "src/math/routing.hpp"

namespace chorale::plan {
namespace {

// The largest number of rows that any of `ranks` ranks receives from one sequence in any block.
std::int64_t most_from_a_sequence(ForcedRouting routing, const ModelShape& shape, std::int64_t ranks) {
  const RoutingRule rule = rule_of(shape);
  const std::int64_t own = rule.experts / ranks;
  std::int64_t most = 0;
  for (std::int64_t block = 0; block < shape.layers; ++block) {
    if (!shape.has_experts(block)) continue;
    const auto counts = counts_of(forced_choices(routing, rule, block), rule, rule.sequence);
    for (auto first = counts.begin(); first != counts.end(); first += own)
      most = std::max(most, std::accumulate(first, first + own, std::int64_t{0}));
  }
  return most;
}

}  // namespace

std::string words_for_expert_loads(const ModelShape& shape, const Layout& layout, std::int64_t micro_batch) {
  const std::int64_t ranks = layout.expert_ranks();
  if (shape.experts.count == 0 || ranks == 1 || shape.experts.forced()) return "";
  // A sequence is split over `divide` ranks, each of which sends a part of the rows. A smaller group of ranks sends only
  // some of these parts.
  const std::int64_t divide = layout.context_ranks(), sequences = std::max<std::int64_t>(ranks / divide, 1);
  const auto part = [&](std::int64_t whole) { return (whole * std::min(ranks, divide) + divide - 1) / divide; };
  const auto rows = [&](ForcedRouting routing) {
    return sequences * micro_batch * part(most_from_a_sequence(routing, shape, ranks));
  };
  return fmt::format(
      "experts of the fullest rank take {} rows of a micro-batch if the routing is balanced, as this plan assumes; {} under "
      "--routing zipf; at most {}",
      rows(ForcedRouting::balanced), rows(ForcedRouting::zipf),
      sequences * rule_of(shape).most_rows(micro_batch, part(shape.sequence), shape.experts.count / ranks));
}

}  // namespace chorale::plan
