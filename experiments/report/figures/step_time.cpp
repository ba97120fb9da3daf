// Shows how every rank spends the time of a step. The length of a bar is the median step time, and the lengths of its parts
// are the shares of the phases. A share is a mean over the steps after the warm-up and over the repetitions. Whiskers show
// the spread of the time of a complete step over the repetitions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/ranking.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

struct StepBar {
  RunByRank parts;
  std::size_t repetitions = 1;
  Summary seconds;                            // the time of a complete step
  double messages = absent, stages = absent;  // shares of the step in which ranks waited for messages and for other stages

  std::string spread() const { return spread_name(repetitions == 1, seconds.has_interval); }
  double waits() const { return messages + stages; }
};

StepBar step_of(const std::vector<const RecordedRun*>& runs) {
  StepBar step{.parts = {.label = runs.front()->label, .parts = step_parts(runs).seconds, .predicted = {}},
               .repetitions = runs.size(),
               .seconds = {.median = absent, .ci_low = absent, .ci_high = absent},
               .messages = over_repetitions(runs, comm_share).median,
               .stages = over_repetitions(runs, bubble_share).median};
  const Samples times = steady_steps("step_time");
  if (per_block(runs, times).empty()) return step;
  step.seconds = spread_of(runs, times);
  step.parts.low = step.seconds.ci_low;
  step.parts.high = step.seconds.ci_high;
  return step;
}

}  // namespace

std::optional<Figure> step_time(const RecordSet& records) {
  std::vector<StepBar> steps;
  std::vector<RunByRank> runs;
  std::set<std::string> spreads;
  for (const auto& same : ranked(records, "phases")) {
    StepBar step = step_of(same);
    if (step.parts.parts.empty()) continue;
    runs.push_back(step.parts);
    spreads.insert(step.spread());
    steps.push_back(std::move(step));
  }
  if (steps.empty()) return {};

  const auto& names = StepParts::names();
  const std::string spread = spread_names(spreads);
  std::vector<std::string> columns{"run", "runs", "rank", "step", spread};
  for (const std::string& name : names) columns.push_back(name);
  Figure figure{.numbers = TextTable(columns)};
  for (const StepBar& step : steps)
    for (std::size_t rank = 0; rank < step.parts.parts.size(); ++rank) {
      std::vector<std::string> cells{
          step.parts.label, fmt::format("{}", step.repetitions), fmt::format("{}", rank),
          quantity(step.seconds.median, Unit::seconds),
          quantity(step.seconds.ci_low, Unit::seconds) + " to " + quantity(step.seconds.ci_high, Unit::seconds)};
      for (const double seconds : step.parts.parts[rank]) cells.push_back(quantity(seconds, Unit::seconds));
      figure.numbers.add(std::move(cells));
    }
  const auto less = [](const StepBar& a, const StepBar& b) { return std::isnan(a.waits()) || a.waits() < b.waits(); };
  const StepBar& most = *std::ranges::max_element(steps, less);
  if (most.waits() < 5e-6)  // printed as 0 %
    figure.finding = fmt::format("{} no rank waits for another.", runs.size() > 1 ? "In all runs" : "In this run");
  else if (!std::isnan(most.waits()))
    figure.finding =
        fmt::format("{} waits {}: {} of its step for messages and {} for other stages, averaged over its ranks.",
                    most.parts.label, runs.size() > 1 ? "the most" : "for others", quantity(most.messages, Unit::percent, 2),
                    quantity(most.stages, Unit::percent, 2));
  if (!figure.finding.empty()) figure.finding += " ";
  figure.finding += "train --trace-steps 10:13 shows the layers, kernels and calls of single steps.";
  figure.charts = draw(ByRank{"Time of a step", "", Unit::seconds, names, mean_of, "mean of the ranks", spread}, runs);
  return figure;
}

}  // namespace chorale::report
