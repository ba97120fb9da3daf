#include "experiments/launch/started_run.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/common/json_rows.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::launch {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code error;
    if (!entry->is_symlink(error) && fs::exists(entry->path() / "metrics.jsonl", error)) runs.push_back(entry->path());
  }
  return runs;
}

}  // namespace

StartedRun::StartedRun(fs::path folder, double began)
    : folder_(std::move(folder)), earlier_(runs_in(folder_)), began_(began) {}

void StartedRun::find_run() {
  for (const fs::path& run : runs_in(folder_))
    if (!std::ranges::count(earlier_, run)) run_ = run;
}

StartedRun::News StartedRun::read(double now) {
  News news;
  if (run_.empty()) find_run();
  if (run_.empty()) return news;
  for (const std::string& text : metrics_.read(run_ / "metrics.jsonl").lines) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const std::string table = line.value("table", "");
    if (std::isnan(opened_)) opened_ = now;
    if (table == "/") {
      status_ = line.value("status", status_);
      from_memory_ |= line.contains("loaded_from_memory");
      if (line.contains("load_microseconds")) load_seconds_ = 1e-6 * line["load_microseconds"].get<double>();
    } else if (table == "train") {
      news.steps.push_back(row_in<train::TrainRow>(line));
      newest_step_ = news.steps.back().step;
      if (first_number_ == 0) first_number_ = newest_step_;
      if (std::isnan(first_step_)) first_step_ = now;
      step_times_.push_back(news.steps.back().step_time);
    } else if (table == "eval") {
      news.evaluations.push_back(row_in<train::EvalRow>(line));
    }
  }
  return news;
}

double StartedRun::step_seconds() const {
  constexpr std::ptrdiff_t fewest = 4, most = 32;
  if (std::ssize(step_times_) < fewest) return absent;
  const auto newest = std::min(std::ssize(step_times_) - 1, most);  // without the first step, which is cold
  return summarize(std::vector<double>(step_times_.end() - newest, step_times_.end())).median;
}

}  // namespace chorale::launch
