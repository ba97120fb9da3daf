// Shows how speed grows with the number of ranks. Runs form a family if they differ only in their number of ranks, their
// layout and their batch. In a family, runs with the same strategy (the axes with more than one rank, such as dp.tp) form
// lines. Each point is relative to the base of its line, which is the point with the fewest ranks:
//
//   strong    the total batch is the same          y: the speed divided by the base's speed; ideal: ratio of rank counts
//   weak      the batch per rank is the same       y: the same for the speed per rank; ideal: 100 %
//
// A run belongs to one strong line and to one weak line, depending on its batch:
//
//   ranks                     1        2        4
//   tokens of a step       4096     4096     4096       strong, from the run with 4096 tokens on one rank
//                          1024     2048                weak, up to 4096 on 4 ranks, from the run with 1024 on one rank
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/launch_events.hpp"
#include "experiments/report/recorded_option.hpp"
#include "parallel/layout/axes.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

struct ScalingPoint {
  double ranks, batch;
  Summary speed;
  std::string spread;  // name of the interval of `speed`: see spread_name in blocks.hpp
};

struct Strategy {
  std::string name;
  std::vector<ScalingPoint> points;  // sorted by number of ranks
};

bool is_axis(const std::string& letters) {
  return std::ranges::any_of(all_axes(), [&](const AxisRow& row) { return row.name == letters; });
}

// The layout without the sizes of its axes: "dp4.tp2.z1" becomes "dp.tp.z1". Returns "" on one rank.
std::string strategy_of(const std::string& label) {
  std::vector<std::string> kept;
  for (const std::string& part : split(label.substr(0, label.find(',')), '.')) {
    const std::string letters = part.substr(0, part.find_last_not_of("0123456789") + 1);  // npos + 1 is 0
    const bool axis = is_axis(letters);
    if (axis && part.substr(letters.size()) == "1") continue;
    kept.push_back(axis ? letters : part);
  }
  return join(kept, ".");
}

// Returns the settings that all runs of a family share, as one string.
std::string family_of(const RecordedRun& run) {
  std::string text;
  for (const auto& [key, value] : run.settings) {
    const bool varies = is_part_of(Whole::layout, run.command, key) || is_part_of(Whole::scale, run.command, key);
    if (!varies && tells_runs_apart(run.command, key)) text += key + "=" + value + "\n";
  }
  return text;
}

std::map<std::string, std::vector<Strategy>> families_of(const RecordSet& records) {
  std::map<std::string, std::map<std::string, std::vector<ScalingPoint>>> families;
  for (const auto& same : records.labeled("train")) {
    const ByBlock speed = per_block(same, steady_steps("tokens_per_s"));
    const RecordedRun& run = *same.front();
    if (changed_layout(run)) continue;  // its median is the speed of no single layout
    const std::vector<double> tokens = run.group("train").numbers("tokens");
    if (!speed.empty() && !tokens.empty()) {
      const Summary spread = spread_of(same, steady_steps("tokens_per_s"));
      families[family_of(run)][strategy_of(run.label)].push_back(
          {static_cast<double>(run.ranks()), tokens.back(), spread, spread_name(same.size() == 1, spread.has_interval)});
    }
  }
  std::map<std::string, std::vector<Strategy>> all;
  for (auto& [family, strategies] : families) {
    const std::vector<ScalingPoint> alone = strategies[""];
    for (auto& [name, points] : strategies) {
      if (name.empty()) continue;
      points.insert(points.end(), alone.begin(), alone.end());
      std::ranges::sort(points, {}, &ScalingPoint::ranks);
      all[family].push_back({name, points});
    }
  }
  return all;
}

std::string spreads_of(const std::map<std::string, std::vector<Strategy>>& families) {
  std::set<std::string> kinds;
  for (const auto& [family, strategies] : families)
    for (const Strategy& strategy : strategies)
      for (const ScalingPoint& point : strategy.points) kinds.insert(point.spread);
  return spread_names(kinds);
}

bool about(double a, double b) { return a > 0.99 * b && a < 1.01 * b; }

struct ScalingKind {
  const char *name, *y;
  bool strong;
};

// The lines of a strategy. A line has the points with about the same batch (for weak scaling: the same batch per rank). The
// points are relative to the first point of the line. If a strategy has several lines, the names of the lines state the
// batch.
std::vector<Line> lines_of(const Strategy& strategy, const ScalingKind& kind) {
  const auto batch_of = [&](const ScalingPoint& point) { return kind.strong ? point.batch : point.batch / point.ranks; };
  std::vector<std::vector<ScalingPoint>> groups;
  for (const ScalingPoint& point : strategy.points) {
    auto group = std::ranges::find_if(groups, [&](const auto& some) { return about(batch_of(some[0]), batch_of(point)); });
    if (group == groups.end()) group = groups.insert(group, std::vector<ScalingPoint>{});
    if (group->empty() || group->back().ranks != point.ranks) group->push_back(point);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  std::vector<Line> lines;
  for (const auto& group : groups) {
    const ScalingPoint& base = group.front();
    Line line{strategy.name, {}};
    if (groups.size() > 1) line.name += fmt::format(", {:.0f} tokens{}", batch_of(base), kind.strong ? "" : "/rank");
    for (const ScalingPoint& point : group) {
      const double by = base.speed.median * (kind.strong ? 1 : point.ranks / base.ranks);
      line.points.push_back({point.ranks, point.speed.median / by, point.speed.ci_low / by, point.speed.ci_high / by});
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// The ideal speed-up depends on the number of ranks of the base, so each base has its own ideal line.
std::vector<Line> ideals_of(const ScalingKind& kind, const std::set<double>& ranks, const std::set<double>& bases) {
  std::vector<Line> ideals;
  for (const double base : bases) {
    Line ideal{"ideal", {}, ideals.empty() ? Line::Kind::limit : Line::Kind::model};
    if (kind.strong && bases.size() > 1) ideal.name += fmt::format(" from {:.0f} rank{}", base, base == 1 ? "" : "s");
    for (const double x : ranks)
      if (x >= base) ideal.points.push_back({x, kind.strong ? x / base : 1});
    ideals.push_back(std::move(ideal));
    if (!kind.strong) break;
  }
  return ideals;
}

}  // namespace

std::optional<Figure> scaling(const RecordSet& records) {
  const auto all = families_of(records);
  Figure figure{.numbers = TextTable({"scaling", "strategy", "ranks", "speed-up or efficiency", spreads_of(all)})};
  std::string best, best_kind;
  double best_value = 0, best_ranks = 0;
  for (const auto& [family, strategies] : all) {
    for (const ScalingKind& kind : {ScalingKind{"Strong scaling", "times as fast", true},
                                    ScalingKind{"Weak scaling", "speed per rank, relative", false}}) {
      LineChart chart{kind.name,
                      fmt::format("{}: one line per strategy, by number of ranks, and the ideal.", kind.name),
                      {.name = "ranks"},
                      {.name = kind.y, .unit = kind.strong ? Unit::plain : Unit::percent, .from_zero = true},
                      {}};
      std::set<double> ranks, bases;
      for (const Strategy& strategy : strategies)
        for (Line& line : lines_of(strategy, kind)) {
          for (const Point& point : line.points) {
            ranks.insert(point.x);
            figure.numbers.add({kind.name, line.name, fmt::format("{:.0f}", point.x), fmt::format("{:.3g}", point.y),
                                fmt::format("{:.3g} to {:.3g}", point.low, point.high)});
          }
          bases.insert(line.points.front().x);
          const Point& last = line.points.back();
          if (last.x > best_ranks || (last.x == best_ranks && last.y > best_value)) {
            best = line.name;
            best_kind = kind.name;
            best_value = last.y;
            best_ranks = last.x;
          }
          chart.lines.push_back(std::move(line));
        }
      if (chart.lines.empty()) continue;
      chart.x.marks.assign(ranks.begin(), ranks.end());
      for (Line& ideal : ideals_of(kind, ranks, bases)) chart.lines.push_back(std::move(ideal));
      figure.charts.push_back(drawing_of(std::move(chart)));
    }
  }
  if (figure.charts.empty()) return {};
  figure.finding = best_kind == "Strong scaling"
                       ? fmt::format("On {:.0f} ranks {} does best: {:.2f} times as fast as on the fewest ranks.",
                                     best_ranks, best, best_value)
                       : fmt::format("On {:.0f} ranks {} does best: a rank keeps {:.0f} % of its speed.", best_ranks, best,
                                     100 * best_value);
  return figure;
}

}  // namespace chorale::report
