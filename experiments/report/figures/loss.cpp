// Loss curves in one chart: for each label, the curve of its first run. A second chart shows how far each curve is from the
// curve of a one-rank run of the same experiment.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_named = series_looks;

struct Curve {
  const Run* run;
  std::vector<Point> points;
};

Curve curve_of(const Run& run) {
  Curve curve{&run, {}};
  const Group train = run.group("train");
  const std::vector<double> steps = train.numbers("step"), loss = train.numbers("loss");
  for (std::size_t i = 0; i < std::min(steps.size(), loss.size()); ++i) curve.points.push_back({steps[i], loss[i]});
  return curve;
}

// Whether two runs should have the same losses although their layouts differ.
bool same_experiment(const Run& a, const Run& b) {
  for (const char* key : {"family", "num-layers", "hidden-size", "seq-length", "vocab-size", "global-batch-size",
                          "optimizer", "lr", "seed", "data", "dropout", "train-iters", "dtype"})
    if (a.setting(key) != b.setting(key)) return false;
  return true;
}

// The absolute difference of two curves, at the steps that both have.
std::vector<Point> distance(const Curve& curve, const Curve& reference) {
  std::map<double, double> of_reference;
  for (const Point& point : reference.points) of_reference[point.x] = point.y;
  std::vector<Point> points;
  for (const Point& point : curve.points)
    if (const auto found = of_reference.find(point.x); found != of_reference.end())
      points.push_back({point.x, std::abs(point.y - found->second)});
  return points;
}

Line line_of(const std::string& name, std::vector<Point> points, std::size_t number) {
  return {name, std::move(points), number, number < most_named ? Line::Kind::series : Line::Kind::other};
}

}  // namespace

std::optional<Figure> loss(const RecordSet& records) {
  std::vector<Curve> curves;
  for (const auto& same : records.labelled("train"))
    if (Curve curve = curve_of(*same.front()); !same.front()->simulated() && !curve.points.empty())
      curves.push_back(std::move(curve));
  if (curves.empty()) return {};
  const auto one_rank =
      std::find_if(curves.begin(), curves.end(), [](const Curve& curve) { return curve.run->ranks() == 1; });
  if (one_rank != curves.end()) std::rotate(curves.begin(), one_rank, one_rank + 1);
  const Curve* reference = one_rank == curves.end() ? nullptr : &curves.front();

  Figure figure{.numbers =
                    TextTable({"run", "steps", "first loss", "last loss", "held-out loss", "furthest from one rank"})};
  LineChart chart{"Loss", "Loss by step, one line per label: its first run.", {.name = "step"}, {.name = "loss"}, {}};
  LineChart apart{"Distance from one rank",
                  "Absolute difference from the loss on one rank, logarithmic, one line per label.",
                  {.name = "step"},
                  {.name = "difference", .spacing = Scale::Spacing::logarithmic},
                  {}};
  double furthest = 0;
  std::size_t compared = 0;
  std::string furthest_run;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const Run& run = *curves[c].run;
    chart.lines.push_back(line_of(run.label, curves[c].points, c));
    double most = absent;
    if (reference && c > 0 && same_experiment(run, *reference->run)) {
      const std::vector<Point> points = distance(curves[c], *reference);
      for (const Point& point : points) most = std::isnan(most) ? point.y : std::max(most, point.y);
      ++compared;
      if (most > furthest) furthest = most, furthest_run = run.label;
      if (most > 0) apart.lines.push_back(line_of(run.label, points, c));
    }
    figure.numbers.add({run.label, fmt::format("{}", curves[c].points.size()),
                        quantity(curves[c].points.front().y, Unit::plain, 5),
                        quantity(curves[c].points.back().y, Unit::plain, 5), quantity(held_out_loss(run), Unit::plain, 5),
                        std::isnan(most) ? "-" : fmt::format("{:.2g}", most)});
  }
  const auto by_end = [](const Curve& a, const Curve& b) { return a.points.back().y < b.points.back().y; };
  const auto [low, high] = std::minmax_element(curves.begin(), curves.end(), by_end);
  const std::string lowest = quantity(low->points.back().y, Unit::plain, 5),
                    highest = quantity(high->points.back().y, Unit::plain, 5);
  if (curves.size() == 1)
    figure.finding = fmt::format("The loss goes from {:.4g} to {:.4g} in {} steps", low->points.front().y,
                                 low->points.back().y, low->points.size());
  else if (lowest == highest)
    figure.finding = fmt::format("All curves end at a loss of {}", lowest);
  else
    figure.finding =
        fmt::format("The last losses lie between {} ({}) and {} ({})", lowest, low->run->label, highest, high->run->label);
  if (compared && furthest == 0)
    figure.finding += "; on every compared layout all losses equal those of one rank bit for bit, so no difference is drawn";
  else if (compared)
    figure.finding += fmt::format("; the furthest from one rank is {}, by {:.2g}", furthest_run, furthest);
  if (curves.size() > most_named)
    figure.finding +=
        fmt::format("; {} of the {} curves are gray: the table has their names", curves.size() - most_named, curves.size());
  figure.finding += ".";
  figure.charts.push_back(draw(chart));
  if (!apart.lines.empty()) figure.charts.push_back(draw(apart));
  return figure;
}

}  // namespace chorale::report
