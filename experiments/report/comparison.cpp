#include "experiments/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

void add(std::vector<Metric>& metrics, const std::string& label, const Metric& kind, const std::vector<double>& samples) {
  std::vector<double> finite;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  if (finite.empty()) return;
  const std::string name = (label.empty() ? "" : label + ": ") + kind.name;
  auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& metric) { return metric.name == name; });
  if (found == metrics.end()) {
    metrics.push_back(kind);
    found = metrics.end() - 1;
    found->name = name;
  }
  found->samples.insert(found->samples.end(), finite.begin(), finite.end());
}

// Of every step, the mean of the ranks.
std::vector<double> phase_of_steps(const Run& run, const std::string& phase) {
  const Group group = run.group("phases");
  const auto phases = group.words("phase");
  const auto shape = group.shape("phase_time");
  const auto at = static_cast<std::size_t>(std::find(phases.begin(), phases.end(), phase) - phases.begin());
  if (shape.size() != 2 || at == phases.size()) return {};
  std::vector<double> means;
  for (const auto& step : in_rows(group.numbers("phase_time"), static_cast<std::size_t>(shape[0] * shape[1]))) {
    double sum = 0;
    for (std::size_t i = at; i < step.size(); i += phases.size()) sum += step[i];
    means.push_back(sum / static_cast<double>(shape[0]));
  }
  return means;
}

void add_training(std::vector<Metric>& metrics, const std::string& label, const Run& run) {
  const Group train = run.group("train");
  add(metrics, label, {"tokens_per_s", Unit::per_second, true, true, {}}, run.steady(train.numbers("tokens_per_s")));
  add(metrics, label, {"step_time", Unit::seconds, false, true, {}}, run.steady(train.numbers("step_time")));
  for (const char* phase : {"forward", "backward", "optimizer", "comm_exposed", "bubble"})
    add(metrics, label, {phase, Unit::seconds, false, false, {}}, run.steady(phase_of_steps(run, phase)));
}

// The name of each row of /series: what was measured, with the conditions that are not the usual ones.
std::vector<std::string> series_names(const Group& series) {
  std::map<std::string, std::vector<std::string>> columns;
  for (const char* name :
       {"op", "backend", "algorithm", "dtype", "redop", "root", "chunks", "cache", "memory", "in_place", "ranks"})
    columns[name] = series.words(name);
  const auto column = [&](const char* name, std::size_t row) {
    return row < columns[name].size() ? columns[name][row] : std::string();
  };
  std::vector<std::string> names;
  const auto bytes = series.numbers("bytes");
  for (std::size_t row = 0; row < bytes.size(); ++row) {
    std::string name = fmt::format("{} {} {} {} {}", column("op", row), column("backend", row), column("algorithm", row),
                                   column("dtype", row), quantity(bytes[row], Unit::bytes));
    const std::tuple<const char*, const char*, const char*> usual[] = {{"redop", "sum", ""},
                                                                       {"root", "0", "root "},
                                                                       {"chunks", "1", "chunks "},
                                                                       {"cache", "hot", ""},
                                                                       {"memory", "symmetric", ""}};
    for (const auto& [what, value, before] : usual)
      if (const std::string found = column(what, row); found != value && found != "none" && found != "-1" && !found.empty())
        name += fmt::format(", {}{}", before, found);
    if (column("in_place", row) == "yes") name += ", in place";
    names.push_back(name + fmt::format(", {} ranks", column("ranks", row)));
  }
  return names;
}

// A call takes as long as on its slowest rank.
void add_bench(std::vector<Metric>& metrics, const Run& run) {
  const std::vector<std::string> names = series_names(run.group("series"));
  const Group samples = run.group("samples");
  const auto series = samples.numbers("series"), repetition = samples.numbers("repetition"), time = samples.numbers("time");
  std::map<std::pair<std::size_t, double>, double> slowest;
  for (std::size_t i = 0; i < std::min({series.size(), repetition.size(), time.size()}); ++i) {
    if (!(series[i] >= 0) || series[i] >= static_cast<double>(names.size())) continue;
    double& most = slowest[{static_cast<std::size_t>(series[i]), repetition[i]}];
    most = std::max(most, time[i]);
  }
  std::vector<std::vector<double>> calls(names.size());
  for (const auto& [call, seconds] : slowest) calls[call.first].push_back(seconds);
  for (std::size_t row = 0; row < names.size(); ++row)
    add(metrics, names[row], {"latency", Unit::seconds, false, true, {}}, calls[row]);
}

}  // namespace

std::vector<Metric> metrics_of(const RecordSet& records) {
  std::vector<Metric> metrics;
  const auto training = records.labelled("train");
  for (const auto& same : training)
    for (const Run* run : same) add_training(metrics, training.size() == 1 ? "" : same.front()->label, *run);
  for (const auto& same : records.labelled("series"))
    for (const Run* run : same) add_bench(metrics, *run);
  return metrics;
}

Comparison compare(const RecordSet& one, const RecordSet& other) {
  const std::vector<Metric> before = metrics_of(one), after = metrics_of(other);
  Comparison all;
  for (const Metric& metric : before) {
    const auto same = std::find_if(after.begin(), after.end(), [&](const Metric& m) { return m.name == metric.name; });
    if (same == after.end()) {
      if (metric.is_speed) all.missing.push_back(metric.name);
      continue;
    }
    Difference d{metric.name, metric.unit, summarize(metric.samples), summarize(same->samples)};
    d.ratio = d.one.median == 0 ? (d.other.median == 0 ? 1 : std::nan("")) : d.other.median / d.one.median;
    d.p = mann_whitney(metric.samples, same->samples);
    d.loss = metric.more_is_better ? 1 - d.ratio : d.ratio - 1;
    d.is_speed = metric.is_speed;
    all.differences.push_back(std::move(d));
  }
  return all;
}

TextTable table_of(const std::vector<Difference>& differences) {
  TextTable table({"metric", "A", "95 % interval of A", "B", "95 % interval of B", "B / A", "p", ""});
  for (const Difference& d : differences)
    table.add({d.name, quantity(d.one.median, d.unit),
               quantity(d.one.ci_low, d.unit) + " to " + quantity(d.one.ci_high, d.unit), quantity(d.other.median, d.unit),
               quantity(d.other.ci_low, d.unit) + " to " + quantity(d.other.ci_high, d.unit),
               std::isfinite(d.ratio) ? fmt::format("{:.3f}", d.ratio) : "-", fmt::format("{:.2g}", d.p),
               !d.real()    ? "~"
               : d.loss > 0 ? (d.is_speed ? "slower" : "more")
               : d.is_speed ? "faster"
                            : "less"});
  return table;
}

std::vector<Difference> slower(const std::vector<Difference>& differences, double threshold) {
  const auto speeds = std::count_if(differences.begin(), differences.end(), [](const Difference& d) { return d.is_speed; });
  std::vector<Difference> found;
  for (const Difference& d : differences)
    if (d.is_speed && d.loss > threshold && d.p * static_cast<double>(speeds) < significant) found.push_back(d);
  return found;
}

}  // namespace chorale::report
