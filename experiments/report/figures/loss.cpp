// Loss curves in one chart, one per label. Beside it, how far each curve is from a reference: the run on one rank, or else
// the first run. Often all layouts have the same bits. Curves that are equal are drawn once, and the legend says
// "identical".
//
//   repetitions   the curve is their median at each step, with their range; they are identical only if all of them are
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_named = series_looks;

struct Curve {
  std::vector<const Run*> runs;  // repetitions
  std::vector<Point> points;
  const Run& run() const { return *runs.front(); }
};

// The median of the repetitions at each step, and their range. A point without finite loss stays in the curve as a gap.
Curve curve_of(const std::vector<const Run*>& runs) {
  std::map<double, std::vector<double>> by_step;
  for (const Run* run : runs) {
    const Group train = run->group("train");
    const std::vector<double> steps = train.numbers("step"), loss = train.numbers("loss");
    for (std::size_t i = 0; i < std::min(steps.size(), loss.size()); ++i) by_step[steps[i]].push_back(loss[i]);
  }
  Curve curve{runs, {}};
  for (const auto& [step, losses] : by_step) {
    if (std::ranges::any_of(losses, [](double loss) { return !std::isfinite(loss); })) {
      curve.points.push_back({step, losses.front()});
      continue;
    }
    const auto [low, high] = std::ranges::minmax_element(losses);
    curve.points.push_back({step, summarize(losses).median, *low, *high});
  }
  return curve;
}

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Whether all repetitions of both have the same losses, bit for bit.
bool identical(const Curve& a, const Curve& b) {
  const auto same = [](const Point& p, const Point& q) {
    return p.x == q.x && equal(p.low, q.low) && equal(p.high, q.high) && equal(p.y, q.y) && equal(p.low, p.high);
  };
  return std::ranges::equal(a.points, b.points, same);
}

// Whether two runs should have the same losses although their layouts differ.
bool same_experiment(const Run& a, const Run& b) {
  for (const char* key : {"family", "num-layers", "hidden-size", "seq-length", "vocab-size", "global-batch-size",
                          "optimizer", "lr", "seed", "data", "dropout", "train-iters", "dtype"})
    if (a.setting(key) != b.setting(key)) return false;
  return true;
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

double largest(const std::vector<Point>& differences) {
  double most = absent;
  for (const Point& point : differences)
    for (const double value : {point.y, point.low, point.high}) most = std::fmax(most, std::abs(value));
  return most;
}

Line line_of(const std::string& name, std::vector<Point> points, std::size_t number) {
  return {name, std::move(points), number, number < most_named ? Line::Kind::series : Line::Kind::other};
}

// One line for each group of identical curves, with all their names.
LineChart chart_of(const std::vector<Curve>& curves) {
  LineChart chart{
      "Loss", "Loss by step, one line per label: the median of its runs.", {.name = "step"}, {.name = "loss"}, {}};
  std::vector<const Curve*> drawn;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const auto same = std::ranges::find_if(drawn, [&](const Curve* other) { return identical(*other, curves[c]); });
    if (same == drawn.end()) {
      drawn.push_back(&curves[c]), chart.lines.push_back(line_of(curves[c].run().label, curves[c].points, c));
    } else {
      std::string& name = chart.lines[static_cast<std::size_t>(same - drawn.begin())].name;
      name += (name.find(", identical: ") == std::string::npos ? ", identical: " : ", ") + curves[c].run().label;
    }
  }
  return chart;
}

// Says where the curves end.
std::string ends_of(const std::vector<Curve>& curves) {
  const auto by_end = [](const Curve& a, const Curve& b) { return a.points.back().y < b.points.back().y; };
  const auto [low, high] = std::minmax_element(curves.begin(), curves.end(), by_end);
  const std::string lowest = quantity(low->points.back().y, Unit::plain, 5),
                    highest = quantity(high->points.back().y, Unit::plain, 5);
  if (curves.size() == 1)
    return fmt::format("The loss goes from {:.4g} to {:.4g} in {} steps", low->points.front().y, low->points.back().y,
                       low->points.size());
  if (lowest == highest) return fmt::format("All curves end at a loss of {}", lowest);
  return fmt::format("The last losses lie between {} ({}) and {} ({})", lowest, low->run().label, highest,
                     high->run().label);
}

}  // namespace

std::optional<Figure> loss(const RecordSet& records) {
  std::vector<Curve> curves;
  for (const auto& same : records.labelled("train"))
    if (Curve curve = curve_of(same); !same.front()->simulated() && !curve.points.empty())
      curves.push_back(std::move(curve));
  if (curves.empty()) return {};
  const auto one_rank =
      std::find_if(curves.begin(), curves.end(), [](const Curve& curve) { return curve.run().ranks() == 1; });
  if (one_rank != curves.end()) std::rotate(curves.begin(), one_rank, one_rank + 1);
  const Curve& reference = curves.front();
  const std::string name = reference.run().label;

  Figure figure{.numbers = TextTable({"run", "runs", "steps", "first loss", "last loss", "held-out loss",
                                      "largest difference from " + name})};
  LineChart apart{"Difference from " + name,
                  "Loss minus the reference's by step, one line per label that differs; logarithmic on both sides of zero.",
                  {.name = "step"},
                  {.name = "difference", .spacing = Scale::Spacing::symmetric},
                  {}};
  double furthest = 0;
  std::size_t compared = 0;
  std::string furthest_run;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const Curve& curve = curves[c];
    const Run& run = curve.run();
    std::string words = "-";
    if (c > 0 && same_experiment(run, reference.run())) {
      std::vector<Point> points = difference(curve, reference);
      const double most = largest(points);
      const bool equals = identical(curve, reference);
      words = equals ? "identical" : quantity(most, Unit::plain, 2);
      ++compared;
      if (most > furthest) furthest = most, furthest_run = run.label;
      apart.lines.push_back(line_of(run.label + (equals ? ": identical" : ""), std::move(points), c));
    }
    figure.numbers.add({run.label, fmt::format("{}", curve.runs.size()), fmt::format("{}", curve.points.size()),
                        quantity(curve.points.front().y, Unit::plain, 5), quantity(curve.points.back().y, Unit::plain, 5),
                        quantity(over_repetitions(curve.runs, held_out_loss).median, Unit::plain, 5), words});
  }
  figure.finding = ends_of(curves);
  if (compared && furthest == 0)
    figure.finding += fmt::format("; on every compared layout the losses are identical to those of {}, bit for bit", name);
  else if (compared)
    figure.finding += fmt::format("; the furthest from {} is {}, by {:.2g}", name, furthest_run, furthest);
  LineChart chart = chart_of(curves);
  if (const auto gray = std::ranges::count(chart.lines, Line::Kind::other, &Line::kind); gray > 0)
    figure.finding += fmt::format("; {} of the {} curves are gray: the table has their names", gray, chart.lines.size());
  figure.finding += ".";
  figure.charts.push_back(drawing_of(std::move(chart)));
  if (furthest > 0) figure.charts.push_back(drawing_of(std::move(apart)));
  return figure;
}

}  // namespace chorale::report
