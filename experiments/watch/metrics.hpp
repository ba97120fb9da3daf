// Reads a run's metrics.jsonl while a different process writes it. The result always consists of the complete lines of the
// current file (growing_file.hpp).
//
//   {"table":"/","run_id":…,"status":"running"}    facts of the run; the last such line says how the run ended
//   {"table": "train", "step": 1, …}               a row of a live table
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/common/growing_file.hpp"
#include "experiments/train/records.hpp"

namespace chorale::watch {

struct Metrics {
  std::string run_id, command_line, status;  // the status is "running" until the run ends; "": unknown
  bool killed = false;                       // the guards (processes that watch ranks) saw the run end, and gave this status
  std::int64_t ranks = 0, last_step = 0;     // 0: unknown
  std::vector<train::TrainRow> steps;
  std::optional<train::EvalRow> evaluation;  // the newest evaluation
  std::int64_t proofs = 0;                   // number of layouts that `prove` has compared

  bool proves() const { return proofs > 0 || command_line.find(" prove") != std::string::npos; }
  bool ended() const { return !status.empty() && status != "running"; }
  void take(const std::string& line);  // adds the contents of a line; ignores invalid lines and unknown tables
};

class MetricsFile {
 public:
  // Reads the text that was added to the file `path` since the last call. A replaced file is read from its beginning.
  // Returns false if the file does not exist.
  bool read(const std::filesystem::path& path);
  const Metrics& metrics() const { return metrics_; }
  double written_at() const { return file_.written_at(); }  // wall-clock time of the last change, in seconds

 private:
  Metrics metrics_;
  GrowingFile file_;
};

struct WatchedFiles {
  std::filesystem::path shown;  // metrics.jsonl of the run to show; empty if none exists yet
  std::filesystem::path suite;  // the suite's metrics.jsonl; its status says whether all runs ended; empty without a suite
};

// Finds the run to show. `folder` is a run, its metrics.jsonl, a suite, or a folder of several runs. If there are several
// runs, the run that wrote last is shown.
WatchedFiles find_metrics(const std::filesystem::path& folder);

}  // namespace chorale::watch
