#include "experiments/compare/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "experiments/statistics.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/memory/memory.hpp"
#include "src/record/reader.hpp"

namespace chorale::compare {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

// A variable's values, and how many stand in one of its rows; nothing where the run has no such variable.
struct Values {
  std::vector<double> all;
  std::int64_t rows = 0;
  std::size_t width() const { return rows ? all.size() / static_cast<std::size_t>(rows) : 0; }
};

Values values_of(const Reader& record, const std::string& group, const std::string& name) {
  const auto groups = record.groups();
  if (!std::count(groups.begin(), groups.end(), "/" + group)) return {};
  for (const Variable& variable : record.variables(group))
    if (variable.name == name) {
      Values values{.rows = variable.shape.empty() ? 1 : variable.shape[0]};
      for (const std::string& cell : variable.cells) values.all.push_back(std::strtod(cell.c_str(), nullptr));
      return values;
    }
  return {};
}

// Without the steps of the warm-up, unless there are no others.
std::vector<double> after(std::int64_t warmup, const Values& values) {
  const auto left_out = values.rows > warmup ? static_cast<std::size_t>(warmup) * values.width() : 0;
  return {values.all.begin() + static_cast<std::ptrdiff_t>(left_out), values.all.end()};
}

double median(const std::vector<double>& samples) { return samples.empty() ? absent : summarize(samples).median; }
double last(const Values& values) { return values.all.empty() ? absent : values.all.back(); }

template <const char* Name>
double of_train(const Reader& record, std::int64_t warmup) {
  return median(after(warmup, values_of(record, "train", Name)));
}

// The share of all ranks' time that one phase takes.
double share_of(const std::string& phase, const Reader& record, std::int64_t warmup) {
  const auto times = after(warmup, values_of(record, "phases", "phase_time"));
  const auto steps = after(warmup, values_of(record, "train", "step_time"));
  const double all = std::accumulate(steps.begin(), steps.end(), 0.0);
  if (times.empty() || all <= 0) return absent;
  double taken = 0;
  std::size_t phases = 0, wanted = 0;
  for (const Variable& variable : record.variables("phases"))
    if (variable.name == "phase") {
      phases = variable.cells.size();
      wanted =
          static_cast<std::size_t>(std::find(variable.cells.begin(), variable.cells.end(), phase) - variable.cells.begin());
    }
  for (std::size_t i = wanted; i < times.size(); i += phases) taken += times[i];
  const double ranks = static_cast<double>(times.size()) / static_cast<double>(phases * steps.size());
  return taken / (all * ranks);
}

// What the rank that needs most held at once, summed over categories (whose peaks need not meet).
double peak_bytes(const Reader& record, std::int64_t) {
  const Values peaks = values_of(record, "memory", "peak");
  if (peaks.all.empty()) return absent;
  const std::vector<double> newest(peaks.all.end() - static_cast<std::ptrdiff_t>(peaks.width()), peaks.all.end());
  double most = 0;
  for (std::size_t first = 0; first < newest.size(); first += categories)
    most = std::max(most, std::accumulate(newest.begin() + static_cast<std::ptrdiff_t>(first),
                                          newest.begin() + static_cast<std::ptrdiff_t>(first + categories), 0.0));
  return most;
}

double bytes_sent(const Reader& record, std::int64_t) {
  const Values sent = values_of(record, "traffic", "bytes_measured"), steps = values_of(record, "train", "step");
  if (sent.all.empty() || steps.rows == 0) return absent;
  const auto all =
      std::accumulate(sent.all.begin(), sent.all.end(), 0.0, [](double sum, double b) { return sum + std::max(b, 0.0); });
  return all / static_cast<double>(steps.rows);
}

constexpr char tokens_per_s[] = "tokens_per_s", step_time[] = "step_time", mfu[] = "mfu";

}  // namespace

std::string Turn::id() const { return fmt::format("{}-r{}", run->name, repetition); }

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> table{
      {"tokens_per_s", "s-1", "median over steps after the warm-up", of_train<tokens_per_s>},
      {"step_time", "s", "median over steps after the warm-up", of_train<step_time>},
      {"mfu", "1", "share of the measured peak of matrix products, median", of_train<mfu>},
      {"loss", "1", "of the last step, nats a token",
       [](const Reader& r, std::int64_t) { return last(values_of(r, "train", "loss")); }},
      {"eval_loss", "1", "of the last evaluation, nats a token",
       [](const Reader& r, std::int64_t) { return last(values_of(r, "eval", "loss")); }},
      {"peak_bytes", "byte", "most that any rank held, categories' peaks summed", peak_bytes},
      {"bytes_sent", "byte", "by all ranks in a step", bytes_sent},
      {"comm_exposed", "1", "share of the ranks' time spent waiting for collectives",
       [](const Reader& r, std::int64_t w) { return share_of("comm_exposed", r, w); }},
      {"bubble", "1", "share of the ranks' time in which a pipeline stage had nothing to do",
       [](const Reader& r, std::int64_t w) { return share_of("bubble", r, w); }},
  };
  return table;
}

Summary::Summary(Recorder& recorder, const Suite& suite, const std::vector<Turn>& turns,
                 const std::vector<std::vector<std::string>>& values)
    : recorder_(recorder),
      suite_(suite),
      turns_(turns),
      values_(values),
      status_(turns.size(), "waiting"),
      seen_(metrics().size(), std::vector<double>(turns.size(), absent)),
      speeds_(turns.size()) {
  recorder.dimension({.name = "run", .size = static_cast<std::int64_t>(turns.size())});
  const auto each = [&](auto of) {
    std::vector<decltype(of(turns[0]))> all;
    for (const Turn& turn : turns) all.push_back(of(turn));
    return all;
  };
  recorder.texts("summary", "id", "run", each([](const Turn& t) { return t.id(); }));
  recorder.texts("summary", "command", "run", each([](const Turn& t) { return t.run->command; }));
  recorder.numbers("summary", "repetition", {"run"}, each([](const Turn& t) { return t.repetition; }), "1", "of the run");
  recorder.numbers("summary", "ranks", {"run"}, each([](const Turn& t) { return std::int64_t{t.ranks}; }), "1",
                   "that took part");
  for (std::size_t v = 0; v < suite.varied.size(); ++v)
    if (suite.varied[v] != "ranks") {
      std::vector<std::string> column;
      for (const auto& row : values) column.push_back(row[v]);
      recorder.texts("summary", replace_all(suite.varied[v], '-', '_'), "run", column);
    }
}

void Summary::finished(std::size_t turn, const std::filesystem::path& record) {
  recorder_.adopt("runs/" + turns_[turn].id(), record);
  const Reader reader(record);
  for (std::size_t m = 0; m < metrics().size(); ++m) seen_[m][turn] = metrics()[m].of(reader, suite_.warmup);
  speeds_[turn] = after(suite_.warmup, values_of(reader, "train", "tokens_per_s"));
  status_[turn] = "ok";
}

void Summary::failed(std::size_t turn, const std::string& why) { status_[turn] = why; }

void Summary::keep() {
  for (std::size_t m = 0; m < metrics().size(); ++m)
    recorder_.numbers("summary", metrics()[m].name, {"run"}, seen_[m], metrics()[m].units, metrics()[m].about);
  recorder_.texts("summary", "status", "run", status_);
  recorder_.flush();
}

namespace {

std::string cell(const std::string& name, double value) {
  if (std::isnan(value)) return "";
  if (name.ends_with("bytes") || name == "bytes_sent") return human_bytes(static_cast<std::int64_t>(value));
  if (name == "mfu" || name == "bubble" || name == "comm_exposed") return fmt::format("{:.1f} %", 100 * value);
  if (name == "step_time") return human_seconds(value);
  return name == "tokens_per_s" ? fmt::format("{:.0f}", value) : fmt::format("{:.4f}", value);
}

}  // namespace

// What a run's repetitions come to together.
struct Summary::Row {
  const SuiteRun* run = nullptr;
  std::vector<std::string> values;
  std::vector<double> medians;  // by metric
  std::vector<double> speeds;   // of every step of every repetition
  std::string trouble;
};

std::vector<Summary::Row> Summary::rows() const {
  std::vector<Row> rows;
  for (const SuiteRun& run : suite_.runs) {
    Row row{.run = &run, .medians = std::vector<double>(metrics().size(), absent)};
    for (std::size_t m = 0; m < metrics().size(); ++m) {
      std::vector<double> samples;
      for (std::size_t t = 0; t < turns_.size(); ++t)
        if (turns_[t].run == &run && !std::isnan(seen_[m][t])) samples.push_back(seen_[m][t]);
      row.medians[m] = median(samples);
    }
    for (std::size_t t = 0; t < turns_.size(); ++t) {
      if (turns_[t].run != &run) continue;
      row.values = values_[t];
      row.speeds.insert(row.speeds.end(), speeds_[t].begin(), speeds_[t].end());
      if (status_[t] != "ok") row.trouble = status_[t];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string Summary::table() const {
  const auto rows = this->rows();
  std::vector<std::string> columns = suite_.varied.empty() ? std::vector<std::string>{"run"} : suite_.varied;
  std::vector<std::size_t> shown;
  for (std::size_t m = 0; m < metrics().size(); ++m)
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& r) { return !std::isnan(r.medians[m]); })) {
      shown.push_back(m);
      columns.push_back(metrics()[m].name);
      if (m == 0) columns.insert(columns.end(), {"95 %", "of the best"});
    }
  columns.push_back("");
  const auto best = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return (std::isnan(a.medians[0]) ? 0 : a.medians[0]) < (std::isnan(b.medians[0]) ? 0 : b.medians[0]);
  });
  TextTable table(columns);
  for (const Row& row : rows) {
    std::vector<std::string> cells = suite_.varied.empty() ? std::vector<std::string>{row.run->name} : row.values;
    for (const std::size_t m : shown) {
      cells.push_back(cell(metrics()[m].name, row.medians[m]));
      if (m != 0) continue;
      const bool differs = mann_whitney(row.speeds, best->speeds) < significant;
      const auto interval = summarize(row.speeds);
      cells.push_back(row.speeds.empty() ? "" : fmt::format("{:.0f}–{:.0f}", interval.ci_low, interval.ci_high));
      cells.push_back(row.speeds.empty() ? ""
                                         : fmt::format("{}{:.0f} %", differs || &row == &*best ? "" : "~",
                                                       100 * row.medians[0] / best->medians[0]));
    }
    cells.push_back(row.trouble);
    table.add(std::move(cells));
  }
  return table.print("text");
}

// The fastest, what it is sure to be faster than, and the smallest.
std::string Summary::sentence() const {
  const auto rows = this->rows();
  const Row *fastest = nullptr, *smallest = nullptr;
  constexpr std::size_t speed = 0, memory = 5;
  for (const Row& row : rows) {
    if (std::isnan(row.medians[speed])) continue;
    if (!fastest || row.medians[speed] > fastest->medians[speed]) fastest = &row;
    if (!smallest || row.medians[memory] < smallest->medians[memory]) smallest = &row;
  }
  if (!fastest) return "";
  const auto alike = std::count_if(rows.begin(), rows.end(), [&](const Row& row) {
    return &row != fastest && !row.speeds.empty() && mann_whitney(row.speeds, fastest->speeds) >= significant;
  });
  return fmt::format("{} trains fastest, {:.0f} tokens/s{}; {} holds least, {} on the rank that holds most.",
                     fastest->run->name, fastest->medians[speed],
                     alike ? fmt::format(" (~: {} cannot be told from it)", alike) : "", smallest->run->name,
                     cell("peak_bytes", smallest->medians[memory]));
}

}  // namespace chorale::compare
