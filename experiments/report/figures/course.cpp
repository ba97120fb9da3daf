// Shows gradient norm, learning rate, step time and MFU at each step, with one curve per label. All steps are shown,
// including the warm-up. A column that no run has recorded is left out. Time and MFU have marks where a launch has started a
// run again, because another layout can have another speed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figures/curve.hpp"
#include "experiments/report/figures/figures.hpp"

namespace chorale::report {
namespace {

struct CourseColumn {
  const char *name, *title, *axis;
  Unit unit;
  Scale::Spacing spacing;
  bool depends_on_layout = false;
};

using enum Scale::Spacing;
constexpr CourseColumn columns[] = {{"grad_norm", "Gradient norm", "norm", Unit::plain, logarithmic},
                                    {"lr", "Learning rate", "learning rate", Unit::plain, linear},
                                    {"step_time", "Time of a step", "time", Unit::seconds, linear, true},
                                    {"mfu", "MFU", "MFU", Unit::percent, linear, true}};

LineChart chart_of(const CourseColumn& column, const std::vector<Curve>& curves) {
  LineChart chart{
      column.title,
      fmt::format("{} by step, one line per label: the median of its runs.", column.title),
      axis_of(Along::steps),
      {.name = column.axis, .unit = column.unit, .spacing = column.spacing, .from_zero = column.spacing == linear},
      lines_of(curves)};
  if (column.depends_on_layout) chart.lines.push_back(interruptions_of(curves, Along::steps));
  return chart;
}

// The lowest and the highest value of all runs in a curve (the curve itself shows their median). `last` is the median at the
// last step.
struct Extremes {
  double low = absent, high = absent, last = absent, lowest_at = 0, highest_at = 0;
  std::string highest_in;  // the run with the highest value
};

Extremes extremes_of(const Curve& curve, const char* column) {
  Extremes extremes;
  for (const RecordedRun* run : curve.runs) {
    const RecordGroup train = run->group("train");
    const std::vector<double> steps = train.numbers("step"), values = train.numbers(column);
    for (std::size_t i = 0; i < std::min(steps.size(), values.size()); ++i) {
      if (!std::isfinite(values[i])) continue;
      if (!(values[i] >= extremes.low)) {
        extremes.low = values[i];
        extremes.lowest_at = steps[i];
      }
      if (!(values[i] <= extremes.high)) {
        extremes.high = values[i];
        extremes.highest_at = steps[i];
        extremes.highest_in = run->id;
      }
    }
  }
  for (const Point& point : curve.points)
    if (std::isfinite(point.y)) extremes.last = point.y;
  return extremes;
}

}  // namespace

std::optional<Figure> course(const RecordSet& records) {
  Figure figure{.numbers = TextTable({"what", "run", "lowest", "at step", "highest", "at step", "last"})};
  for (const CourseColumn& column : columns) {
    const std::vector<Curve> curves = curves_of(records, column.name);
    double most = absent;
    for (const Curve& curve : curves) {
      const Extremes extremes = extremes_of(curve, column.name);
      if (std::isnan(extremes.high)) continue;
      const auto words = [&](double value) { return quantity(value, column.unit, 4); };
      figure.numbers.add({column.title, curve.run().label, words(extremes.low), fmt::format("{:.0f}", extremes.lowest_at),
                          words(extremes.high), fmt::format("{:.0f}", extremes.highest_at), words(extremes.last)});
      if (column.name == std::string("grad_norm") && !(extremes.high <= most)) {
        most = extremes.high;
        figure.finding = fmt::format("The greatest gradient norm is {}, at step {:.0f}{}{}.", words(extremes.high),
                                     extremes.highest_at, curves.size() > 1 ? " of " + curve.run().label : "",
                                     curve.runs.size() > 1 ? fmt::format(" (run {})", extremes.highest_in) : "");
      }
      most = std::fmax(most, extremes.high);
    }
    if (!std::isnan(most)) figure.charts.push_back(drawing_of(chart_of(column, curves)));
  }
  if (figure.charts.empty()) return {};
  return figure;
}

}  // namespace chorale::report
