// A sweep is a set of training runs that are ranked by their loss and differ in one numeric setting, such as lr, besides
// their seed. This figure shows the held-out loss by this setting. Runs that are equal in all other settings form a line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/parse_number.hpp"
#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/labels.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

double number_of(const RecordedRun& run, const std::string& setting) {
  return parse_number(run.setting(setting)).value_or(absent);
}

// The only setting in which the runs differ and which has only numeric values. Returns "" if there is no such setting, or
// more than one.
std::string swept(const RecordSet& records, const std::vector<std::vector<const RecordedRun*>>& kinds) {
  std::vector<std::string> numbers;
  for (const std::string& setting : records.differing_settings())
    if (setting != "seed" && std::ranges::none_of(kinds, [&](const auto& runs) {
          return std::isnan(number_of(*runs.front(), setting)) ||
                 runs.front()->label.find(in_label(setting, runs.front()->setting(setting))) == std::string::npos;
        }))
      numbers.push_back(setting);
  return numbers.size() == 1 ? numbers[0] : "";
}

std::string without(std::string label, const std::string& words) {
  const auto at = label.find(words);
  return at == std::string::npos ? label : label.erase(at, words.size());
}

}  // namespace

std::optional<Figure> sweep(const RecordSet& records) {
  if (records.metric != by_loss) return {};
  auto kinds = records.labeled("train");
  std::erase_if(kinds, [](const auto& runs) { return runs.front()->command == another_program; });
  const std::string setting = swept(records, kinds);
  if (setting.empty()) return {};
  Figure figure{.numbers = TextTable({"run", setting, "seeds", "held-out loss", "lowest", "highest"})};
  LineChart chart{"Held-out loss by " + setting,
                  fmt::format("One line for each kind of run, by {}; whiskers: the spread of the seeds.", setting),
                  {.name = setting},
                  {.name = "held-out loss, median of the seeds"},
                  {}};
  double least = absent, most = absent;
  Point best{absent, absent};
  for (const auto& runs : kinds) {
    const Summary loss = over_repetitions(runs, held_out_loss);
    if (std::isnan(loss.median)) continue;
    const double x = number_of(*runs.front(), setting);
    const std::string name = without(runs.front()->label, ", " + in_label(setting, runs.front()->setting(setting)));
    auto line = std::ranges::find(chart.lines, name, &Line::name);
    if (line == chart.lines.end()) line = chart.lines.insert(line, {.name = name, .points = {}});
    line->points.push_back({x, loss.median, loss.ci_low, loss.ci_high});
    least = std::fmin(least, x);
    most = std::fmax(most, x);
    if (!(best.y <= loss.median)) best = {x, loss.median};
    const std::size_t seeds = per_block(runs, [](const RecordedRun& run) { return std::vector{held_out_loss(run)}; }).size();
    figure.numbers.add({name, fmt::format("{:.6g}", x), fmt::format("{}", seeds), quantity(loss.median, Unit::plain, 5),
                        quantity(loss.ci_low, Unit::plain, 5), quantity(loss.ci_high, Unit::plain, 5)});
  }
  if (!(most > least)) return {};
  for (Line& line : chart.lines) std::ranges::sort(line.points, {}, &Point::x);
  if (least > 0 && most >= 8 * least) chart.x.spacing = Scale::Spacing::logarithmic;
  const bool at_the_edge = best.x == least || best.x == most;
  figure.finding = fmt::format("The loss is lowest at {} {:.6g}{}.", setting, best.x,
                               at_the_edge ? ", the end of the range: a value beyond it may be better" : "");
  figure.charts.push_back(drawing_of(std::move(chart)));
  return figure;
}

}  // namespace chorale::report
