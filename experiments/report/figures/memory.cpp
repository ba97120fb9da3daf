// The peak bytes of every rank by memory category, above the planned bytes; of a simulated run, the planned bytes by
// stage. Categories peak at different times, so a bar (the sum of the peaks) is an upper bound of what the rank held at
// once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {

std::optional<Figure> memory(const RecordSet& records) {
  std::vector<RunByRank> runs;
  std::vector<std::string> categories;
  double unfragmented = absent;
  bool simulated = true;
  for (const auto& same : records.labelled("memory")) {
    MemoryUse use = memory_of(*same.front());
    if (same.front()->simulated()) std::swap(use.peak, use.planned);
    if (use.peak.empty() || (!categories.empty() && use.categories != categories)) continue;
    categories = use.categories;
    runs.push_back({same.front()->label, use.peak, use.planned, use.stages});
    simulated &= same.front()->simulated();
    unfragmented = std::fmin(unfragmented, least_unfragmented(*same.front()));
  }
  if (runs.empty()) return {};

  Figure figure{.numbers = TextTable({"run", "rank", "category", "peak", "planned"})};
  double furthest = 0;
  bool planned = false;
  for (const RunByRank& run : runs)
    for (std::size_t rank = 0; rank < run.parts.size(); ++rank)
      for (std::size_t c = 0; c < categories.size(); ++c) {
        const bool has_plan = rank < run.predicted.size();
        const bool only_planned = !run.names.empty();
        const double peak = only_planned ? absent : run.parts[rank][c];
        const double plan = has_plan ? run.predicted[rank][c] : only_planned ? run.parts[rank][c] : absent;
        figure.numbers.add(
            {run.label, run.name_of(rank), categories[c], quantity(peak, Unit::bytes), quantity(plan, Unit::bytes)});
        planned = planned || has_plan;
        if (has_plan && std::max(peak, plan) > 0)
          furthest = std::max(furthest, std::abs(peak - plan) / total(run.parts[rank]));
      }
  const auto need = [](const RunByRank& run) { return total(largest_rank(run.parts)); };
  const auto [least, most] = std::minmax_element(runs.begin(), runs.end(),
                                                 [&](const RunByRank& a, const RunByRank& b) { return need(a) < need(b); });
  const char* const fullest = simulated ? "As planned, the fullest" : "The fullest";
  figure.finding =
      runs.size() == 1
          ? fmt::format("{} rank of {} needs {}", fullest, most->label, quantity(need(*most), Unit::bytes))
          : fmt::format("{} rank needs {} under {} and {} under {}", fullest, quantity(need(*least), Unit::bytes),
                        least->label, quantity(need(*most), Unit::bytes), most->label);
  if (planned)
    figure.finding +=
        furthest == 0
            ? ", exactly as planned"
            : fmt::format("; no category differs from its plan by more than {:.2g} % of the rank's memory", 100 * furthest);
  figure.finding += ".";
  if (!std::isnan(unfragmented))
    figure.finding += fmt::format(" After a step, the largest free block has at least {} of a rank's free memory.",
                                  quantity(unfragmented, Unit::percent, 2));
  figure.charts = draw(ByRank{"Peak memory", "planned", Unit::bytes, categories, largest_rank, "the fullest rank"}, runs);
  return figure;
}

}  // namespace chorale::report
