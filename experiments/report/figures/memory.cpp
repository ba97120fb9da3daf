// Shows the bytes of every rank by memory category, at the time of the rank's peak, with the planned bytes below them. A
// simulated run has only planned bytes, by stage. A bar's length is the rank's peak. The length of a run's longest bar is
// the run's memory per rank in the table of the runs. If a run was repeated, the repetition that needed the most memory is
// shown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/ranking.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

// Adds the categories of each rank and their sum to the table. Returns the largest difference between a category and its
// plan, as a share of the rank's memory; NaN without a plan.
double add_rows(TextTable& numbers, const RunByRank& run, const std::vector<std::string>& categories) {
  const bool only_planned = !run.names.empty();
  double furthest = absent;
  for (std::size_t rank = 0; rank < run.parts.size(); ++rank) {
    const bool has_plan = rank < run.predicted.size();
    const auto add = [&](const std::string& category, double bytes, double plan) {
      const std::string words = quantity(bytes, Unit::bytes), planned = quantity(plan, Unit::bytes);
      numbers.add({run.label, run.name_of(rank), category, only_planned ? "-" : words, only_planned ? words : planned});
    };
    for (std::size_t c = 0; c < categories.size(); ++c) {
      const double bytes = run.parts[rank][c], plan = has_plan ? run.predicted[rank][c] : absent;
      add(categories[c], bytes, plan);
      if (has_plan && total(run.parts[rank]) > 0)
        furthest = std::fmax(furthest, std::abs(bytes - plan) / total(run.parts[rank]));
    }
    add("all", total(run.parts[rank]), has_plan ? total(run.predicted[rank]) : absent);
  }
  return furthest;
}

}  // namespace

std::optional<Figure> memory(const RecordSet& records) {
  std::vector<RunByRank> runs;
  std::vector<std::string> categories;
  double unfragmented = absent;
  bool simulated = true, adds_up = true;
  for (const auto& same : ranked(records, "memory")) {
    const RecordedRun& fullest = fullest_of(same);
    MemoryUse use = memory_of(fullest);
    if (fullest.simulated()) std::swap(use.held, use.planned);
    if (use.held.empty() || (!categories.empty() && use.categories != categories)) continue;
    categories = use.categories;
    runs.push_back({fullest.label, use.held, use.planned, use.stages});
    simulated &= fullest.simulated();
    adds_up &= use.adds_up;
    for (const RecordedRun* run : same) unfragmented = std::fmin(unfragmented, least_unfragmented(*run));
  }
  if (runs.empty()) return {};

  Figure figure{.numbers = TextTable({"run", "rank", "category", "held at the peak", "planned"})};
  double furthest = absent;
  for (const RunByRank& run : runs) furthest = std::fmax(furthest, add_rows(figure.numbers, run, categories));
  const auto need = [](const RunByRank& run) { return total(largest_rank(run.parts)); };
  const auto [least, most] = std::ranges::minmax_element(runs, {}, need);
  const char* const fullest = simulated ? "As planned, the fullest" : "The fullest";
  figure.finding =
      runs.size() == 1
          ? fmt::format("{} rank of {} needs {}", fullest, most->label, quantity(need(*most), Unit::bytes))
          : fmt::format("{} rank needs {} under {} and {} under {}", fullest, quantity(need(*least), Unit::bytes),
                        least->label, quantity(need(*most), Unit::bytes), most->label);
  if (!std::isnan(furthest))
    figure.finding +=
        furthest == 0
            ? ", exactly as planned"
            : fmt::format("; no category differs from its plan by more than {:.2g} % of the rank's memory", 100 * furthest);
  figure.finding += ".";
  if (!std::isnan(unfragmented))
    figure.finding += fmt::format(" After a step, the largest free block has at least {} of a rank's free memory.",
                                  quantity(unfragmented, Unit::percent, 2));
  if (!adds_up)
    figure.finding +=
        " Records of older versions have only each category's own peak: their bars are longer than the rank's memory.";
  figure.charts = draw(ByRank{"Peak memory", "planned", Unit::bytes, categories, largest_rank, "the fullest rank"}, runs);
  return figure;
}

}  // namespace chorale::report
