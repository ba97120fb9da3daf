// Shows the step time that was predicted from the machine file before the run, below the measured step time. The measured
// time is the median of the steps after the warm-up, and then of the repetitions. Runs without a prediction are left out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/ranking.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

constexpr double near = 1.15;  // a prediction within 15 %

double distance(double ratio) { return std::max(ratio, 1 / ratio); }

}  // namespace

std::optional<Figure> prediction(const RecordSet& records) {
  Figure figure{.numbers = TextTable({"run", "measured", "predicted", "predicted / measured"})};
  BarChart chart{.title = "Time of a step, measured and predicted",
                 .description = "One bar per run: the measured time; the prediction is outlined below it.",
                 .axis = {.name = "time of a step, median of the runs", .unit = Unit::seconds},
                 .parts = {"time"}};
  std::size_t all = 0, good = 0;
  double furthest = 1;
  std::string furthest_run;
  for (const auto& same : ranked(records, "forecast")) {
    const Samples steps = steady_steps("step_time");
    const double predicted = over_repetitions(same, predicted_step_time).median;
    if (same.front()->simulated() || !std::isfinite(predicted) || per_block(same, steps).empty()) continue;
    const Summary measured = spread_of(same, steps);
    const std::string& label = same.front()->label;
    const double ratio = predicted / measured.median;
    figure.numbers.add(
        {label, quantity(measured.median, Unit::seconds), quantity(predicted, Unit::seconds), fmt::format("{:.2f}", ratio)});
    chart.bars.push_back({label, {measured.median}, measured.ci_low, measured.ci_high});
    chart.bars.push_back({.name = "predicted", .parts = {predicted}, .outlined = true});
    ++all;
    good += distance(ratio) <= near;
    if (distance(ratio) >= distance(furthest)) {
      furthest = ratio;
      furthest_run = label;
    }
  }
  if (all == 0) return {};
  figure.finding =
      all == 1 ? fmt::format("The prediction for {} is {:.2f} times the measured time of a step.", furthest_run, furthest)
               : fmt::format(
                     "{} of {} predictions are within 15 % of the measured time of a step; the furthest is {:.2f} times "
                     "as long, for {}.",
                     good, all, furthest, furthest_run);
  figure.charts.push_back(drawing_of(std::move(chart)));
  return figure;
}

}  // namespace chorale::report
