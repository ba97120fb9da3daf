#include "experiments/report/figures/by_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_run_charts = 8;

void add_bars(BarChart& chart, const ByRank& kind, const RunByRank& run, const std::string& name,
              const std::vector<double>& parts, const std::vector<double>& predicted) {
  chart.bars.push_back({.name = name, .parts = parts, .low = run.low, .high = run.high});
  if (!predicted.empty()) chart.bars.push_back({.name = kind.prediction, .parts = predicted, .outlined = true});
}

BarChart chart_of(const ByRank& kind, const std::string& title, const std::string& each) {
  return {.title = title,
          .description = fmt::format("One bar per {}, stacked from {}.{}", each, fmt::join(kind.parts, ", "),
                                     kind.spread.empty() ? "" : " Whiskers: " + kind.spread + "."),
          .axis = {.name = kind.what, .unit = kind.unit},
          .parts = kind.parts};
}

}  // namespace

std::string RunByRank::name_of(std::size_t rank) const {
  return rank < names.size() ? names[rank] : fmt::format("rank {}", rank);
}

double total(const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

std::vector<double> largest_rank(const std::vector<std::vector<double>>& ranks) {
  const auto largest = std::ranges::max_element(ranks, {}, total);
  return largest == ranks.end() ? std::vector<double>{} : *largest;
}

std::vector<Drawing> draw(const ByRank& kind, const std::vector<RunByRank>& runs) {
  std::vector<Drawing> charts;
  if (runs.size() > 1) {
    BarChart all = chart_of(kind, fmt::format("{}, {}", kind.what, kind.of_run_name), "run");
    for (const RunByRank& run : runs)
      add_bars(all, kind, run, run.label, kind.of_run(run.parts), kind.of_run(run.predicted));
    charts.push_back(drawing_of(std::move(all)));
  }
  std::vector<const RunByRank*> chosen;  // of several runs, those with several bars; the overview shows the others
  for (const RunByRank& run : runs)
    if (runs.size() == 1 || run.parts.size() > 1) chosen.push_back(&run);
  if (chosen.size() > most_run_charts) {
    const auto less = [&](const RunByRank* a, const RunByRank* b) {
      return total(kind.of_run(a->parts)) < total(kind.of_run(b->parts));
    };
    const auto [least, most] = std::minmax_element(chosen.begin(), chosen.end(), less);
    chosen = {*least, *most};
  }
  for (const RunByRank* run : chosen) {
    BarChart chart = chart_of(kind, fmt::format("{} of {}", kind.what, run->label), split(run->name_of(0), ' ')[0]);
    for (std::size_t rank = 0; rank < run->parts.size(); ++rank)
      add_bars(chart, kind, *run, run->name_of(rank), run->parts[rank],
               rank < run->predicted.size() ? run->predicted[rank] : std::vector<double>{});
    charts.push_back(drawing_of(std::move(chart)));
  }
  return charts;
}

}  // namespace chorale::report
