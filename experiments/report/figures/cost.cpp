// Shows how the ranks of each stage spend a simulated step. The bars have the time of each kind of kernel, and the time that
// ranks wait for the calls of each axis. Repetitions in virtual time are equal, so only the first is shown.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/ranking.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

struct Spending {
  const RecordedRun* run;
  std::vector<std::string> classes, kinds;
  std::vector<double> ranks;                 // indexed by class
  std::vector<std::vector<double>> seconds;  // indexed by class and kind
};

Spending spending_of(const RecordedRun& run) {
  const RecordGroup group = run.group("simulated");
  Spending s{&run, labels(group, "class"), labels(group, "kind"), group.numbers("ranks"), {}};
  s.seconds = in_rows(group.numbers("seconds"), s.kinds.size());
  return s;
}

// The kinds of all runs, without duplicates, and without kinds that take no time.
std::vector<std::string> kinds_of(const std::vector<Spending>& all) {
  std::vector<std::string> kinds;
  for (const Spending& s : all)
    for (std::size_t k = 0; k < s.kinds.size(); ++k) {
      const bool used = std::ranges::any_of(s.seconds, [k](const auto& parts) { return parts[k] > 0; });
      if (used && !std::ranges::count(kinds, s.kinds[k])) kinds.push_back(s.kinds[k]);
    }
  return kinds;
}

// The kinds to show, at most one per color: the kinds that take the most time, and "other" for all remaining kinds.
std::vector<std::string> shown_of(const std::vector<Spending>& all, std::vector<std::string> kinds) {
  if (kinds.size() <= series_colors) return kinds;
  std::map<std::string, double> seconds;
  for (const Spending& s : all)
    for (const auto& parts : s.seconds)
      for (std::size_t k = 0; k < s.kinds.size(); ++k) seconds[s.kinds[k]] += parts[k];
  while (kinds.size() >= series_colors)
    kinds.erase(std::ranges::min_element(kinds, {}, [&](const std::string& kind) { return seconds[kind]; }));
  kinds.emplace_back("other");
  return kinds;
}

std::vector<double> in_order(const Spending& s, const std::vector<double>& parts, const std::vector<std::string>& kinds) {
  std::vector<double> ordered(kinds.size(), 0);
  for (std::size_t k = 0; k < s.kinds.size(); ++k)
    if (const auto at = std::ranges::find(kinds, s.kinds[k]); at != kinds.end())
      ordered[static_cast<std::size_t>(at - kinds.begin())] = parts[k];
    else if (kinds.back() == "other")
      ordered.back() += parts[k];
  return ordered;
}

// The mean over all ranks. Classes are weighted by their number of ranks.
std::vector<double> mean_of(const Spending& s, const RunByRank& run) {
  std::vector<double> mean(run.parts.front().size(), 0);
  const double all = total(s.ranks);
  for (std::size_t c = 0; c < run.parts.size(); ++c)
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += run.parts[c][k] * s.ranks[c] / all;
  return mean;
}

// Returns the largest part of the step, with its share: "wait: dp, 31 %".
std::string greatest(const std::vector<double>& parts, const std::vector<std::string>& kinds) {
  const auto most = std::ranges::max_element(parts);
  return fmt::format("{}, {:.0f} %", kinds[static_cast<std::size_t>(most - parts.begin())], 100 * *most / total(parts));
}

}  // namespace

std::optional<Figure> cost(const RecordSet& records) {
  std::vector<Spending> all;
  for (const auto& same : ranked(records, "simulated"))
    if (Spending s = spending_of(*same.front()); !s.seconds.empty() && s.ranks.size() == s.seconds.size())
      all.push_back(std::move(s));
  const std::vector<std::string> kinds = shown_of(all, kinds_of(all));
  if (kinds.empty()) return {};

  std::vector<std::string> columns{"run", "of"};
  columns.insert(columns.end(), kinds.begin(), kinds.end());
  Figure figure{.numbers = TextTable(columns)};
  const auto add = [&](const std::string& run, const std::string& of, const std::vector<double>& parts) {
    std::vector<std::string> cells{run, of};
    for (const double seconds : parts) cells.push_back(quantity(seconds, Unit::seconds));
    figure.numbers.add(std::move(cells));
  };
  std::vector<RunByRank> runs, means;
  for (const Spending& s : all) {
    RunByRank run{.label = s.run->label, .names = s.classes};
    for (const auto& parts : s.seconds) run.parts.push_back(in_order(s, parts, kinds));
    for (std::size_t c = 0; c < run.parts.size(); ++c)
      add(run.label, s.ranks[c] > 1 ? fmt::format("{}, {:.0f} ranks", run.name_of(c), s.ranks[c]) : run.name_of(c),
          run.parts[c]);
    means.push_back({.label = run.label, .parts = {mean_of(s, run)}, .names = {"all ranks"}});
    add(run.label, "mean of all ranks", means.back().parts[0]);
    runs.push_back(std::move(run));
  }
  const auto less = [](const RunByRank& a, const RunByRank& b) { return total(a.parts[0]) < total(b.parts[0]); };
  const auto [best, worst] = std::ranges::minmax_element(means, less);
  figure.finding = fmt::format("The greatest part of a step under {}: {}", best->label, greatest(best->parts[0], kinds));
  figure.finding += means.size() > 1 ? fmt::format("; under {}, which takes the most time: {}.", worst->label,
                                                   greatest(worst->parts[0], kinds))
                                     : ".";
  const ByRank kind{"Time of a step", "", Unit::seconds, kinds, largest_rank, "mean of all ranks"};
  if (means.size() > 1) figure.charts.push_back(draw(kind, means).front());
  for (std::size_t r = 0; r < runs.size() && runs.size() <= 8; ++r) figure.charts.push_back(draw(kind, {runs[r]}).front());
  return figure;
}

}  // namespace chorale::report
