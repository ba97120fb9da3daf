#include "experiments/report/figures/curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/launch_events.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_lines = 8, most_names = 5;

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Maps each step of /train to its position on the axis. A resumed run starts after the tokens of all earlier steps. A step
// that was done twice counts once, because the weights have seen its tokens once.
std::map<double, double> places_of(const RecordedRun& run, Along along) {
  const RecordGroup train = run.group("train");
  const std::vector<double> steps = train.numbers("step"),
                            column =
                                along == Along::steps ? steps : train.numbers(along == Along::tokens ? "tokens" : "time");
  std::map<double, double> places;
  for (std::size_t i = 0; i < std::min(steps.size(), column.size()); ++i) places[steps[i]] = column[i];
  if (along != Along::tokens || places.empty()) return places;
  double tokens = (places.begin()->first - 1) * places.begin()->second;
  for (auto& [step, place] : places) place = tokens += place;
  return places;
}

// Lists the labels of identical curves: "dp1, identical: dp2, tp2".
std::string name_of(const std::vector<const Curve*>& identical) {
  std::string name = identical.front()->run().label;
  const std::size_t others = identical.size() - 1, shown = others <= most_names ? others : most_names - 1;
  for (std::size_t i = 1; i <= shown; ++i) name += (i == 1 ? ", identical: " : ", ") + identical[i]->run().label;
  return name + (shown < others ? fmt::format(" and {} more", others - shown) : "");
}

}  // namespace

ChartAxis axis_of(Along along) {
  switch (along) {
    case Along::tokens: return {.name = "tokens", .from_zero = true};
    case Along::seconds: return {.name = "time", .unit = Unit::seconds, .from_zero = true};
    case Along::steps: break;
  }
  return {.name = "step"};
}

bool Curve::operator==(const Curve& other) const {
  return std::ranges::equal(points, other.points, [](const Point& p, const Point& q) {
    return p.x == q.x && equal(p.low, q.low) && equal(p.high, q.high) && equal(p.y, q.y) && equal(p.low, p.high);
  });
}

Curve curve_of(const std::vector<const RecordedRun*>& runs, const std::string& column, Along along,
               const std::string& group) {
  std::map<double, std::vector<double>> places, values;  // positions and values by step, one per run
  for (const RecordedRun* run : runs) {
    const std::map<double, double> own = places_of(*run, along);
    const RecordGroup table = run->group(group);
    const std::vector<double> steps = table.numbers("step"), numbers = table.numbers(column);
    std::map<double, double> last;  // after a rollback, the table has some steps twice
    for (std::size_t i = 0; i < std::min(steps.size(), numbers.size()); ++i) last[steps[i]] = numbers[i];
    for (const auto& [step, value] : last)
      if (const auto place = own.find(step); place != own.end()) {
        places[step].push_back(place->second);
        values[step].push_back(value);
      }
  }
  Curve curve{runs, {}};
  for (const auto& [step, numbers] : values) {
    const double x = summarize(places[step]).median;
    if (std::ranges::any_of(numbers, [](double number) { return !std::isfinite(number); })) {
      curve.points.push_back({x, numbers.front()});
      continue;
    }
    const auto [low, high] = std::ranges::minmax_element(numbers);
    curve.points.push_back({x, summarize(numbers).median, *low, *high});
  }
  return curve;
}

std::vector<Curve> curves_of(const RecordSet& records, const std::string& column, Along along) {
  std::vector<Curve> curves;
  for (const auto& same : records.labeled("train"))
    if (Curve curve = curve_of(same, column, along); !same.front()->simulated() && !curve.points.empty())
      curves.push_back(std::move(curve));
  return curves;
}

Line interruptions_of(const std::vector<Curve>& curves, Along along) {
  Line line{.name = "the launch started the run again", .points = {}, .kind = Line::Kind::events};
  for (const Curve& curve : curves)
    for (const RecordedRun* run : curve.runs) {
      const std::map<double, double> places = places_of(*run, along);
      for (const LaunchEvent& event : launch_events_of(*run)) {
        if (!event.is_interruption()) continue;
        const auto next = places.upper_bound(static_cast<double>(event.step));
        const double place = next == places.begin() ? 0 : std::prev(next)->second;
        const std::string name = event.name() + (event.change().empty() ? "" : ", " + event.change());
        line.points.push_back({.x = along == Along::seconds ? event.t : place,
                               .y = absent,
                               .name = curves.size() > 1 ? name + ", run " + curve.run().label : name});
      }
    }
  return line;
}

std::vector<Line> lines_of(const std::vector<Curve>& curves) {
  std::vector<Line> lines;
  for (const auto& group : grouped(curves, std::identity()))  // groups of identical curves
    lines.push_back({name_of(group), group.front()->points,
                     lines.size() < most_lines ? Line::Kind::series : Line::Kind::other, group.front()->run().label});
  return lines;
}

}  // namespace chorale::report
