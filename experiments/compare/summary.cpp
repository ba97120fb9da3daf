#include "experiments/compare/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/common/each.hpp"
#include "experiments/common/parse_number.hpp"
#include "experiments/report/training.hpp"
#include "src/base/text.hpp"

namespace chorale::compare {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

struct TableMetric {
  const char* name;
  const char* units;
  const char* about;
  double (*of)(const report::RecordedRun& run);  // the run's value, or NaN if its record lacks it
};

template <const char* Name>
double median_of(const report::RecordedRun& run) {
  return report::steady_median(run, Name);
}

double last_of(const report::RecordedRun& run, const char* group) {
  const std::vector<double> losses = run.group(group).numbers("loss");
  return losses.empty() ? none : losses.back();
}

constexpr char tokens_per_s[] = "tokens_per_s", step_time[] = "step_time", mfu[] = "mfu", comm_share[] = "comm_share";

const std::vector<TableMetric>& metrics() {
  static const std::vector<TableMetric> table{
      {"warm_up", "1", "first steps that the medians exclude", report::steps_of_warm_up},
      {"tokens_per_s", "s-1", "median of the steps after the warm-up", median_of<tokens_per_s>},
      {"step_time", "s", "median of the steps after the warm-up", median_of<step_time>},
      {"predicted_step_time", "s", "predicted before the run by the machine file", report::predicted_step_time},
      {"mfu", "1", "share of the measured peak of matrix products, median", median_of<mfu>},
      {"loss", "1", "loss of the last step, nats per token",
       [](const report::RecordedRun& run) { return last_of(run, "train"); }},
      {"eval_loss", "1", "loss of the last evaluation, nats per token",
       [](const report::RecordedRun& run) { return last_of(run, "eval"); }},
      {"peak_bytes", "byte", "peak memory/rank, largest over ranks", report::largest_peak},
      {"bytes_sent", "byte", "sent by all ranks per training step, without evaluations", report::bytes_per_step},
      {"comm_share", "1", "share of a step in which ranks waited for communication, median", median_of<comm_share>},
      {"dropped_share", "1", "share of the choices of experts that were dropped, median", report::dropped_share},
      {"attention_imbalance", "1", "processor time of attention: the busiest context rank over the mean",
       report::attention_imbalance},
      {"bubble", "1", "share of a step in which ranks waited for other stages, median", report::bubble_share},
  };
  return table;
}

// Parses the strings as integers. Returns an empty vector if any string is not an integer.
std::vector<std::int64_t> whole_numbers_in(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : texts) {
    if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) return {};
    numbers.push_back(std::atoll(text.c_str()));
  }
  return numbers;
}

// The column of a varied setting has the setting's name, unless another column of /summary already has it.
std::string column_of(const std::string& setting) {
  const std::string name = replace_all(setting, '-', '_');
  const bool is_taken =
      std::ranges::count(std::vector<std::string>{"id", "command", "repetition", "status", "ranks"}, name) ||
      std::ranges::any_of(metrics(), [&](const TableMetric& metric) { return metric.name == name; });
  return is_taken ? "setting_" + name : name;
}

// Parses the strings as numbers. An empty string is NaN. Returns an empty vector if any other string is not a number.
std::vector<double> numbers_in(const std::vector<std::string>& texts) {
  const auto is_other = [](const std::string& text) { return !text.empty() && !parse_number(text); };
  const bool are_all_empty = std::ranges::all_of(texts, &std::string::empty);
  if (are_all_empty || std::ranges::any_of(texts, is_other)) return {};
  return each(texts, [](const std::string& text) { return parse_number(text).value_or(none); });
}

}  // namespace

std::string Repetition::id() const { return fmt::format("{}-r{}", run->name, repetition); }

SuiteSummary::SuiteSummary(Recorder& recorder, const Suite& suite, const std::vector<Repetition>& turns,
                           const std::vector<std::vector<std::string>>& values)
    : recorder_(recorder),
      turns_(turns),
      warm_up_(suite.warm_up),
      trains_(std::ranges::any_of(suite.runs, [](const SuiteRun& run) { return run.command != "bench"; })),
      status_(turns.size(), "waiting"),
      seen_(metrics().size(), std::vector<double>(turns.size(), none)),
      ranks_(each(turns, [](const Repetition& turn) { return std::int64_t{turn.ranks}; })) {
  if (suite.warm_up >= 0) recorder.number("warm_up", suite.warm_up);
  if (suite.metric != report::by_settings) recorder.text("config", "metric", suite.metric);
  recorder.dimension({.name = "run", .size = std::ssize(turns)});
  recorder.rows("summary", std::ssize(turns));
  recorder.texts("summary", "id", "run", each(turns, &Repetition::id));
  recorder.texts("summary", "command", "run", each(turns, [](const Repetition& t) { return t.run->command; }));
  recorder.numbers("summary", "repetition", {"run"}, each(turns, &Repetition::repetition), "1",
                   "number of the repetition, from 1");
  for (std::size_t v = 0; v < suite.varied.size(); ++v) {
    if (suite.varied[v] == "ranks") continue;
    const std::vector<std::string> column = each(values, [v](const auto& row) { return row[v]; });
    const std::string name = column_of(suite.varied[v]);
    const std::string about = fmt::format("the setting {}", suite.varied[v]);
    if (const std::vector<std::int64_t> whole = whole_numbers_in(column); !whole.empty())
      recorder.numbers("summary", name, {"run"}, whole, "1", about);
    else if (const std::vector<double> numbers = numbers_in(column); !numbers.empty())
      recorder.numbers("summary", name, {"run"}, numbers, "1", about);
    else
      recorder.texts("summary", name, "run", column);
  }
}

void SuiteSummary::finished(std::size_t turn, const std::filesystem::path& record) {
  recorder_.attach("runs/" + turns_[turn].id(), record);
  const report::RecordSet records = report::read_records({record.string()}, warm_up_);
  for (std::size_t m = 0; m < metrics().size(); ++m) seen_[m][turn] = metrics()[m].of(records.runs.at(0));
  ranks_[turn] = records.runs.at(0).ranks();  // a simulated run has the ranks of its layout
  status_[turn] = "ok";
}

void SuiteSummary::failed(std::size_t turn, const std::string& why) { status_[turn] = why; }

void SuiteSummary::keep() {
  for (std::size_t m = 0; m < metrics().size() && trains_; ++m)
    recorder_.numbers("summary", metrics()[m].name, {"run"}, seen_[m], metrics()[m].units, metrics()[m].about);
  recorder_.numbers("summary", "ranks", {"run"}, ranks_, "1", "ranks that took part");
  recorder_.texts("summary", "status", "run", status_);
  recorder_.flush();
}

std::vector<std::string> SuiteSummary::troubles() const {
  std::vector<std::string> lines;
  for (std::size_t t = 0; t < turns_.size(); ++t)
    if (status_[t] != "ok" && status_[t] != "waiting") lines.push_back(fmt::format("{}: {}", turns_[t].id(), status_[t]));
  return lines;
}

}  // namespace chorale::compare
