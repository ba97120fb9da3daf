// Shows loss curves by step, by tokens and by time, with one curve per label. The charts also have the held-out loss, the
// entropy of the synthetic language, which no model can beat, and marks where a launch has started a run again. A second
// chart shows how far each curve is from a reference, which is the run on one rank or, if there is none, the first run.
// Often the losses of all layouts are bit-identical.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/curve.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/recorded_option.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

// Whether two runs should have the same losses although their layouts differ. A setting that a record lacks is at its
// default: the option came later, or it has no effect in this run.
bool same_experiment(const RecordedRun& a, const RecordedRun& b) {
  const auto value = [](const RecordedRun& run, const std::string& setting) {
    const Option* const option = option_of(run.command, setting);
    return run.settings.contains(setting) || !option ? run.setting(setting) : option->initial;
  };
  const auto agree = [&](const auto& entry) {
    const std::string& setting = entry.first;
    return !may_change_losses(a.command, setting) || value(a, setting) == value(b, setting);
  };
  return a.command == b.command && std::ranges::all_of(a.settings, agree) && std::ranges::all_of(b.settings, agree);
}

// The curve minus the median of the reference, at the steps that both have.
std::vector<Point> difference(const Curve& curve, const Curve& reference) {
  std::map<double, double> of_reference;
  for (const Point& point : reference.points) of_reference[point.x] = point.y;
  std::vector<Point> points;
  for (const Point& p : curve.points)
    if (const auto found = of_reference.find(p.x); found != of_reference.end())
      points.push_back({p.x, p.y - found->second, p.low - found->second, p.high - found->second});
  return points;
}

// The largest difference of a curve from the reference at any step, and over all repetitions.
struct Greatest {
  double value = absent, step = 0;
  std::string run;
};

Greatest greatest_of(const std::vector<Curve>& differences) {
  Greatest greatest;
  for (const Curve& curve : differences)
    for (const Point& point : curve.points)
      for (const double value : {point.y, point.low, point.high})
        if (std::isfinite(value) && !(std::abs(value) <= greatest.value))
          greatest = {std::abs(value), point.x, curve.run().label};
  return greatest;
}

// Adds the lowest possible losses (floors) of the curves: one legend entry, and a line for each distinct printed value. If
// the floors are far below the losses, lines at the floors would flatten the curves, so a note states the floors instead.
void add_floors(LineChart& chart, const std::vector<Curve>& curves) {
  const auto words = [](double floor) { return quantity(floor, Unit::plain, 5); };
  std::map<std::string, double> floors;  // by printed value; each seed has its own language, and thus its own floor
  for (const Curve& curve : curves)
    for (const RecordedRun* run : curve.runs)
      if (const double floor = loss_floor(*run); std::isfinite(floor)) floors.emplace(words(floor), floor);
  if (floors.empty()) return;
  double low = absent, high = absent, begin = absent, end = absent, least = absent, most = absent;
  for (const Line& line : chart.lines)
    for (const Point& point : line.points)
      if (std::isfinite(point.y)) {
        low = std::fmin(low, point.y);
        high = std::fmax(high, point.y);
        begin = std::fmin(begin, point.x);
        end = std::fmax(end, point.x);
      }
  Line line{.name = "", .points = {}, .kind = Line::Kind::limit};
  for (const auto& [text, floor] : floors) {
    least = std::fmin(least, floor);
    most = std::fmax(most, floor);
    if (!line.points.empty()) line.points.push_back({end, absent});  // interrupts the line
    line.points.insert(line.points.end(), {{begin, floor}, {end, floor}});
  }
  line.name = floors.size() == 1 ? "entropy floor: " + words(least)
                                 : fmt::format("entropy floors: {} to {}", words(least), words(most));
  if (low - least > 2 * (high - low))
    chart.note = line.name + ", below this plot";
  else if (std::isfinite(low))
    chart.lines.push_back(std::move(line));
}

LineChart chart_of(const RecordSet& records, const std::vector<Curve>& curves, Along along) {
  const ChartAxis axis = axis_of(along);
  LineChart chart{along == Along::steps ? "Loss" : "Loss by " + axis.name,
                  fmt::format("Loss by {}, one line per label: the median of its runs.", axis.name),
                  axis,
                  {.name = "loss"},
                  {}};
  chart.lines = lines_of(along == Along::steps ? curves : curves_of(records, "loss", along));
  const auto held_out = each(curves, [&](const Curve& curve) { return curve_of(curve.runs, "loss", along, "eval"); });
  for (Line& line : lines_of(held_out)) {
    const auto named = [&](const Line& other) { return other.series == line.series && other.kind == Line::Kind::series; };
    if (line.points.empty() || std::ranges::none_of(chart.lines, named)) continue;
    line.name = "held-out loss of " + line.name;
    line.kind = Line::Kind::hollow;
    chart.lines.push_back(std::move(line));
    chart.hollow = "held-out loss";
  }
  add_floors(chart, curves);
  chart.lines.push_back(interruptions_of(curves, along));
  return chart;
}

// Lists the final values of the curves.
std::string ends_of(const std::vector<Curve>& curves) {
  const auto [low, high] = std::ranges::minmax_element(curves, {}, [](const Curve& c) { return c.points.back().y; });
  const std::string lowest = quantity(low->points.back().y, Unit::plain, 5),
                    highest = quantity(high->points.back().y, Unit::plain, 5);
  if (curves.size() == 1)
    return fmt::format("The loss goes from {:.4g} to {:.4g} in {} steps", low->points.front().y, low->points.back().y,
                       low->points.size());
  if (lowest == highest) return fmt::format("All curves end at a loss of {}", lowest);
  return fmt::format("The losses of the last step lie between {} ({}) and {} ({})", lowest, low->run().label, highest,
                     high->run().label);
}

}  // namespace

std::optional<Figure> loss(const RecordSet& records) {
  std::vector<Curve> curves = curves_of(records, "loss");
  if (curves.empty()) return {};
  const auto one_rank = std::ranges::find(curves, 1, [](const Curve& curve) { return curve.run().ranks(); });
  if (one_rank != curves.end()) std::rotate(curves.begin(), one_rank, one_rank + 1);
  const Curve& reference = curves.front();
  const std::string name = reference.run().label;

  std::vector<std::string> columns{"run", "runs", "steps", "first loss", "last loss", "held-out loss"};
  const bool has_floor =
      std::ranges::any_of(curves, [](const Curve& curve) { return std::isfinite(loss_floor(curve.run())); });
  if (has_floor) columns.emplace_back("entropy floor");
  if (curves.size() > 1) columns.push_back("largest difference from " + name);
  Figure figure{.numbers = TextTable(columns)};
  std::vector<Curve> differences;  // differences of comparable curves that are not identical to the reference
  std::size_t compared = 0, identical = 0;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const Curve& curve = curves[c];
    std::string words = "-";
    if (c > 0 && same_experiment(curve.run(), reference.run())) {
      ++compared;
      if (curve == reference) {
        ++identical;
        words = "identical";
      } else {
        differences.push_back({curve.runs, difference(curve, reference)});
        words = quantity(greatest_of({differences.back()}).value, Unit::plain, 2);
      }
    }
    std::vector<std::string> cells{curve.run().label,
                                   fmt::format("{}", curve.runs.size()),
                                   fmt::format("{}", curve.points.size()),
                                   quantity(curve.points.front().y, Unit::plain, 5),
                                   quantity(curve.points.back().y, Unit::plain, 5),
                                   quantity(over_repetitions(curve.runs, held_out_loss).median, Unit::plain, 5)};
    if (has_floor) cells.push_back(quantity(loss_floor(curve.run()), Unit::plain, 5));
    if (curves.size() > 1) cells.push_back(words);
    figure.numbers.add(std::move(cells));
  }
  figure.finding = ends_of(curves);
  const Greatest greatest = greatest_of(differences);
  if (compared && (identical == compared || greatest.value == 0))
    figure.finding += fmt::format("; on every compared layout the losses are identical to those of {}, bit for bit", name);
  else if (greatest.value > 0)
    figure.finding += fmt::format(". The greatest difference from {} at any step is {:.2g}: {} at step {:.0f}", name,
                                  greatest.value, greatest.run, greatest.step);
  LineChart chart = chart_of(records, curves, Along::steps);
  if (const auto gray = std::ranges::count(chart.lines, Line::Kind::other, &Line::kind); gray > 0) {
    const auto all = gray + std::ranges::count(chart.lines, Line::Kind::series, &Line::kind);
    figure.finding += fmt::format("; {} of the {} curves are gray: the table has their names", gray, all);
  }
  figure.finding += ".";
  figure.charts.push_back(drawing_of(std::move(chart)));
  if (greatest.value > 0)
    figure.charts.push_back(drawing_of(
        LineChart{"Difference from " + name,
                  "Loss minus the reference's by step, one line per label that differs; logarithmic on both sides of zero.",
                  axis_of(Along::steps),
                  {.name = "difference", .spacing = Scale::Spacing::symmetric},
                  lines_of(differences)}));
  for (const Along along : {Along::tokens, Along::seconds})
    figure.charts.push_back(drawing_of(chart_of(records, curves, along)));
  return figure;
}

}  // namespace chorale::report
