#include "experiments/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/bench_series.hpp"
#include "experiments/report/training.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

// The time in seconds of a phase in every step, averaged over the ranks.
std::vector<double> phase_of_steps(const RecordedRun& run, const std::string& phase) {
  const RecordGroup group = run.group("phases");
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

void add_training(std::vector<Metric>& metrics, const std::string& label, const std::vector<const RecordedRun*>& runs) {
  const auto add = [&](const Metric& kind, const Samples& steady) {
    Metric metric = kind;
    if (!label.empty()) metric.name = label + ": " + kind.name;
    metric.launches = per_launch(runs, steady);
    if (!metric.launches.empty()) metrics.push_back(std::move(metric));
  };
  add({"tokens_per_s", Unit::per_second, true, true}, steady_steps("tokens_per_s"));
  add({"step_time", Unit::seconds, false, true}, steady_steps("step_time"));
  for (const char* phase : {"forward", "backward", "optimizer", "comm_exposed", "bubble"})
    add({phase, Unit::seconds}, [phase](const RecordedRun& run) { return run.steady(phase_of_steps(run, phase)); });
}

// Returns the name of each row of /series. A name has the operation, backend, algorithm, type and size, the conditions that
// differ from their defaults, and the settings that distinguish the runs.
std::vector<std::string> series_names(const RecordGroup& series, const std::string& settings) {
  std::map<std::string, std::vector<std::string>> columns;
  for (const char* name : {"op", "backend", "algorithm", "dtype", "redop", "root", "chunks", "cache", "memory", "in_place",
                           "ranks", "hosts", "groups", "strided"})
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
    name += fmt::format(", {} ranks", column("ranks", row));
    if (const std::string hosts = column("hosts", row); !hosts.empty() && hosts != "1")
      name += fmt::format(" on {} hosts", hosts);
    if (const std::string groups = column("groups", row); !groups.empty() && groups != "1")
      name += fmt::format(", {} {}groups", groups, column("strided", row) == "yes" ? "strided " : "");
    names.push_back(name + settings);
  }
  return names;
}

// Adds the latencies. A row of /series has the median of its calls; the time of a call is the time of its slowest rank.
void add_bench(std::vector<Metric>& metrics, const std::vector<const RecordedRun*>& runs) {
  std::map<std::string, std::map<const RecordedRun*, double>> medians;  // times in seconds, by name of the series and by run
  std::vector<std::string> names;                                       // names of the series, in order of first appearance
  for (const RecordedRun* run : runs) {
    const RecordGroup series = run->group("series");
    const auto of_run = series_names(series, other_settings(*run));
    const auto median = series.numbers("median");
    for (std::size_t row = 0; row < std::min(of_run.size(), median.size()); ++row) {
      if (!std::count(names.begin(), names.end(), of_run[row])) names.push_back(of_run[row]);
      medians[of_run[row]].emplace(run, median[row]);
    }
  }
  for (const std::string& name : names) {
    const auto& of_series = medians[name];
    const ByBlock launches = per_launch(runs, [&](const RecordedRun& run) {
      const auto found = of_series.find(&run);
      return found == of_series.end() ? std::vector<double>{} : std::vector<double>{found->second};
    });
    metrics.push_back({name + ": latency", Unit::seconds, false, true, launches, true});
  }
}

double median_of(const ByBlock& launches) { return summarize(launches).median; }

std::string verdict_on(const MetricDifference& d) {
  if (!d.contrast.enough()) return "too few runs to tell";
  if (std::isnan(d.p)) return "-";
  if (!d.real()) return "~";
  return d.loss > 0 ? (d.is_speed ? "slower" : "more") : d.is_speed ? "faster" : "less";
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::seconds: return "s";
    case Unit::bytes: return "B";
    case Unit::bytes_per_second: return "B/s";
    case Unit::per_second: return "1/s";
    case Unit::percent:
    case Unit::plain: break;
  }
  return "1";
}

// Returns the table for programs. The table has plain values, and a column for each fact that the text table states in
// words.
TextTable table_for_programs(const std::vector<MetricDifference>& differences) {
  TextTable table(
      {"metric", "unit", "A", "B", "launches of A", "launches of B", "paired", "B / A", "low", "high", "p", "verdict"});
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : ""; };
  for (const MetricDifference& d : differences) {
    const Contrast& c = d.contrast;
    table.add({d.name, name_of(d.unit), number(d.one), number(d.other), std::to_string(d.launches_of_one),
               std::to_string(d.launches_of_other), c.paired ? "yes" : "no", number(c.ratio), number(c.low), number(c.high),
               number(d.p), verdict_on(d)});
  }
  return table;
}

std::string number_or_dash(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

}  // namespace

std::vector<Metric> metrics_of(const RecordSet& records) {
  std::vector<Metric> metrics;
  auto training = records.labeled("train");
  std::erase_if(training, [](const auto& runs) { return runs.front()->command == another_program; });
  for (const auto& same : training) add_training(metrics, training.size() == 1 ? "" : same.front()->label, same);
  for (const auto& same : records.labeled("series")) add_bench(metrics, same);
  return metrics;
}

Comparison compare(const std::vector<Metric>& one, const std::vector<Metric>& other) {
  Comparison all;
  std::vector<double> p;
  for (const Metric& metric : one) {
    const auto same = std::ranges::find(other, metric.name, &Metric::name);
    if (same == other.end()) {
      if (metric.is_speed) all.missing.push_back(metric.name);
      continue;
    }
    MetricDifference d{metric.name,
                       metric.unit,
                       median_of(metric.launches),
                       median_of(same->launches),
                       metric.launches.size(),
                       same->launches.size(),
                       contrast(metric.launches, same->launches)};
    d.loss = metric.more_is_better ? 1 - d.contrast.ratio : d.contrast.ratio - 1;
    d.worst = metric.more_is_better ? 1 - d.contrast.low : d.contrast.high - 1;
    d.fall = 1 - (metric.more_is_better ? d.contrast.low : 1 / d.contrast.high);
    d.is_speed = metric.is_speed;
    d.is_bench = metric.is_bench;
    p.push_back(d.contrast.p);
    all.differences.push_back(std::move(d));
  }
  correct_by_holm(p);
  for (std::size_t i = 0; i < p.size(); ++i) all.differences[i].p = p[i];
  return all;
}

TextTable table_of(const std::vector<MetricDifference>& differences, const std::string& format) {
  if (format == "csv" || format == "json") return table_for_programs(differences);
  TextTable table({"metric", "A", "B", "launches", "B / A", "95 % interval", "p", "verdict"});
  for (const MetricDifference& d : differences) {
    const Contrast& c = d.contrast;
    table.add({d.name, quantity(d.one, d.unit), quantity(d.other, d.unit),
               c.paired ? fmt::format("{} pair{}", c.blocks, c.blocks == 1 ? "" : "s")
                        : fmt::format("{} and {}", d.launches_of_one, d.launches_of_other),
               number_or_dash("{:.4g}", c.ratio),
               std::isfinite(c.low) ? fmt::format("{:.4g} to {:.4g}", c.low, c.high) : "-", number_or_dash("{:.2g}", d.p),
               verdict_on(d)});
  }
  return table;
}

std::string legend_of(const std::vector<MetricDifference>& differences) {
  std::size_t told = 0;
  bool paired = false, alone = false, pairs = false, apart = false, few_of_bench = false, few_of_training = false;
  for (const MetricDifference& d : differences) {
    const bool tested = d.contrast.enough() && !std::isnan(d.p), has_ratio = std::isfinite(d.contrast.ratio);
    told += tested;
    pairs |= has_ratio && d.contrast.paired;
    apart |= has_ratio && !d.contrast.paired;
    few_of_bench |= !d.contrast.enough() && d.is_bench;
    few_of_training |= !d.contrast.enough() && !d.is_bench;
    paired |= tested && d.contrast.paired;
    alone |= tested && !d.contrast.paired;
  }
  std::vector<std::string> ratios, tests;
  if (pairs) ratios.push_back("geometric mean of the ratios of paired launches");
  if (apart) ratios.push_back("ratio of the geometric means of the launches");
  if (paired) tests.push_back("paired t-test on log ratios of launches that alternated");
  if (alone) tests.push_back("Welch's t-test on logs of launches");
  std::string text;
  if (!ratios.empty()) text += fmt::format("A, B: median of the launches; B / A: {}\n", join(ratios, ", else "));
  if (told > 0)
    text += fmt::format("p: {}, corrected for {} comparison{} (Holm); ~: p ≥ {}, no significant difference\n",
                        join(tests, ", "), told, told == 1 ? "" : "s", significant);
  if (alone)
    text +=
        "launches of A and B did not alternate, so the ratio may come from the machine (bench --against alternates them)\n";
  if (few_of_bench || few_of_training)
    text += fmt::format("too few runs to tell: a comparison needs {} launches of each\n", fewest_blocks);
  if (few_of_bench) text += fmt::format("  for benchmarks: bench --launches {} --out FILE.h5\n", fewest_blocks);
  if (few_of_training)
    text += fmt::format(
        "  for training, a record is one launch: report new-1.h5 … new-{0}.h5 --check old-1.h5,…,old-{0}.h5;\n"
        "  or put both settings into one suite: compare SUITE.toml --repetitions {0}\n",
        fewest_blocks);
  return text;
}

std::vector<MetricDifference> slower(const std::vector<MetricDifference>& differences, double threshold) {
  std::vector<MetricDifference> found;
  for (const MetricDifference& d : differences)
    if (d.is_speed && d.loss > threshold && d.real()) found.push_back(d);
  return found;
}

std::vector<MetricDifference> perhaps_slower(const std::vector<MetricDifference>& differences, double threshold) {
  std::vector<MetricDifference> found;
  for (const MetricDifference& d : differences)
    if (d.is_speed && d.worst > threshold && !(d.loss > threshold && d.real())) found.push_back(d);
  return found;
}

}  // namespace chorale::report
