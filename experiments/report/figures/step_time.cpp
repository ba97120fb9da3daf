// How every rank spends the time of a step: the median seconds of each phase over the steps after the warm-up.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {

std::optional<Figure> step_time(const RecordSet& records) {
  std::vector<RunByRank> runs;
  for (const auto& same : records.labelled("phases"))
    if (StepParts parts = step_parts(*same.front()); !parts.seconds.empty())
      runs.push_back({same.front()->label, parts.seconds, {}});
  if (runs.empty()) return {};

  const auto& names = StepParts::names();
  std::vector<std::string> columns{"run", "rank"};
  for (const std::string& name : names) columns.push_back(name);
  Figure figure{.numbers = TextTable(columns)};
  const RunByRank* most = nullptr;
  std::vector<double> most_waits{};
  double largest = -1;
  for (const RunByRank& run : runs) {
    for (std::size_t rank = 0; rank < run.parts.size(); ++rank) {
      std::vector<std::string> cells{run.label, fmt::format("{}", rank)};
      for (const double seconds : run.parts[rank]) cells.push_back(quantity(seconds, Unit::seconds));
      figure.numbers.add(std::move(cells));
    }
    const std::vector<double> mean = mean_of_ranks(run.parts);
    const double waits = total(mean) > 0 ? (mean[StepParts::exposed] + mean[StepParts::bubble]) / total(mean) : 0;
    if (waits > largest) largest = waits, most = &run, most_waits = mean;
  }
  figure.finding = fmt::format(
      "{} waits {}: {:.0f} % of its step for messages and {:.0f} % for other stages, averaged over its ranks.", most->label,
      runs.size() > 1 ? "the most" : "for others", 100 * most_waits[StepParts::exposed] / total(most_waits),
      100 * most_waits[StepParts::bubble] / total(most_waits));
  figure.charts = draw(ByRank{"Time of a step", "", Unit::seconds, names, mean_of_ranks, "mean of the ranks"}, runs);
  return figure;
}

}  // namespace chorale::report
