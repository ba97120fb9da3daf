#include "experiments/watch/metrics.hpp"

#include "experiments/common/json_rows.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"

namespace chorale::watch {
namespace fs = std::filesystem;
namespace {

constexpr const char* file_name = "metrics.jsonl";
constexpr int levels = 2;  // number of folder levels that are searched: runs/<suite>/<id>

void take_text(const nlohmann::json& row, const char* name, std::string& text) {
  if (const auto found = row.find(name); found != row.end() && found->is_string()) text = *found;
}

void take_count(const nlohmann::json& row, const char* name, std::int64_t& value) {
  if (const auto found = row.find(name); found != row.end())
    value = found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

struct FoundFile {
  fs::path path;
  fs::file_time_type written = fs::file_time_type::min();
};

// Finds the newest metrics.jsonl below a folder, at most `deep` levels down. Skips symbolic links, because the runs that
// they point to are also found under their real names.
void look_below(const fs::path& folder, int deep, FoundFile& newest) {
  std::error_code gone;  // folders can appear and disappear during the search
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    std::error_code error;
    if (entry->is_symlink(error) || !entry->is_directory(error)) continue;
    const fs::path path = entry->path() / file_name;
    const auto written = fs::last_write_time(path, error);
    if (!error && written > newest.written) newest = {path, written};
    if (deep > 1) look_below(entry->path(), deep - 1, newest);
  }
}

// The end of the run, as recorded by the guards (the processes that watch the ranks of a host). Ignored if metrics.jsonl was
// written later, because the run then continued in the same folder.
std::string end_seen_by_guards(const fs::path& metrics) try {
  std::error_code error;
  const fs::path folder = metrics.parent_path();
  const auto seen = fs::last_write_time(folder / "flight", error);
  if (error || seen < fs::last_write_time(metrics, error)) return "";
  return read_dumps(folder).lost.starts_with(stopped_mark) ? "stopped" : "failed";
} catch (const Error&) {
  return "";
}

}  // namespace

void Metrics::take(const std::string& line) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return;
  std::string table;
  take_text(row, "table", table);
  if (table == "/") {
    take_text(row, "run_id", run_id);
    take_text(row, "cmdline", command_line);
    take_text(row, "status", status);
    take_count(row, "jobsize", ranks);
    take_count(row, "train_iters", last_step);
  } else if (table == "train") {
    steps.push_back(row_in<train::TrainRow>(row));
  } else if (table == "eval") {
    evaluation = row_in<train::EvalRow>(row);
  } else if (table == "proofs") {
    ++proofs;
  }
}

bool MetricsFile::read(const fs::path& path) {
  const GrowingFile::News news = file_.read(path);
  if (!news.exists) return false;
  if (news.starts_over) metrics_ = {};
  for (const std::string& line : news.lines) metrics_.take(line);
  if (metrics_.status == "running")
    if (const std::string end = end_seen_by_guards(path); !end.empty()) {
      metrics_.status = end;
      metrics_.killed = true;
    }
  return true;
}

WatchedFiles find_metrics(const fs::path& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder, error)) return {folder, {}};
  const fs::path own = folder / file_name;
  const bool stands = fs::exists(own, error);
  FoundFile newest;
  look_below(folder, levels, newest);
  if (newest.path.empty()) return {stands ? own : fs::path(), {}};
  return {newest.path, stands ? own : fs::path()};
}

}  // namespace chorale::watch
