// The course of training, step by step: gradient norm, learning rate, time of a step and MFU, one curve per label. All steps
// are shown, those of the warm-up too. A column that no run has recorded is left out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figures/curve.hpp"
#include "experiments/report/figures/figures.hpp"

namespace chorale::report {
namespace {

struct Column {
  const char *name, *title, *axis;
  Unit unit;
  Scale::Spacing spacing;
};

using enum Scale::Spacing;
constexpr Column columns[] = {{"grad_norm", "Gradient norm", "norm", Unit::plain, logarithmic},
                              {"lr", "Learning rate", "learning rate", Unit::plain, linear},
                              {"step_time", "Time of a step", "time", Unit::seconds, linear},
                              {"mfu", "MFU", "MFU", Unit::percent, linear}};

LineChart chart_of(const Column& column, const std::vector<Curve>& curves) {
  return {column.title,
          fmt::format("{} by step, one line per label: the median of its runs.", column.title),
          axis_of(Along::steps),
          {.name = column.axis, .unit = column.unit, .spacing = column.spacing, .from_zero = column.spacing == linear},
          lines_of(curves)};
}

// The extremes of a curve, and its value at the last step.
struct Extremes {
  double low = absent, high = absent, last = absent, lowest_at = 0, highest_at = 0;
};

Extremes extremes_of(const Curve& curve) {
  Extremes extremes;
  for (const Point& point : curve.points) {
    if (!std::isfinite(point.y)) continue;
    if (!(point.y >= extremes.low)) extremes.low = point.y, extremes.lowest_at = point.x;
    if (!(point.y <= extremes.high)) extremes.high = point.y, extremes.highest_at = point.x;
    extremes.last = point.y;
  }
  return extremes;
}

}  // namespace

std::optional<Figure> course(const RecordSet& records) {
  Figure figure{.numbers = TextTable({"what", "run", "lowest", "at step", "highest", "at step", "last"})};
  for (const Column& column : columns) {
    const std::vector<Curve> curves = curves_of(records, column.name);
    double most = absent;
    for (const Curve& curve : curves) {
      const Extremes extremes = extremes_of(curve);
      if (std::isnan(extremes.high)) continue;
      const auto words = [&](double value) { return quantity(value, column.unit, 4); };
      figure.numbers.add({column.title, curve.run().label, words(extremes.low), fmt::format("{:.0f}", extremes.lowest_at),
                          words(extremes.high), fmt::format("{:.0f}", extremes.highest_at), words(extremes.last)});
      if (column.name == std::string("grad_norm") && !(extremes.high <= most)) {
        most = extremes.high;
        figure.finding = fmt::format("The greatest gradient norm is {}, at step {:.0f}{}.", words(extremes.high),
                                     extremes.highest_at, curves.size() > 1 ? " of " + curve.run().label : "");
      }
      most = std::fmax(most, extremes.high);
    }
    if (!std::isnan(most)) figure.charts.push_back(drawing_of(chart_of(column, curves)));
  }
  if (figure.charts.empty()) return {};
  return figure;
}

}  // namespace chorale::report
