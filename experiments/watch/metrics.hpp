// A run as its metrics.jsonl tells it, taken up line by line while somebody else writes it. The file may not be there yet,
// may end in the middle of a line, may be cut or replaced: what is read is always the whole lines of the file that stands
// there now.
//
//   {"table":"/","run_id":…,"status":"running"}    facts of the run; the last such line says how it ended
//   {"table": "train", "step": 1, …}               a row of a live table
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chorale::watch {

struct Step {
  std::int64_t step = 0, peak_bytes = 0;
  double time = 0, loss = 0, step_time = 0, tokens_per_s = 0, mfu = 0, communication = 0, bubble = 0;
};

struct Evaluation {
  std::int64_t step = 0;
  double loss = 0;
};

struct Metrics {
  std::string run_id, command_line, status;  // "running" until it ends; empty while nothing is known
  std::int64_t ranks = 0, last_step = 0;     // 0: unknown
  std::vector<Step> steps;
  std::optional<Evaluation> evaluation;  // the newest

  bool ended() const { return !status.empty() && status != "running"; }
  void take(const std::string& line);  // what is no line of ours is passed over
};

class MetricsFile {
 public:
  // Reads what came since the last call, of the file that has this name now. False while there is none.
  bool read(const std::filesystem::path& path);
  const Metrics& metrics() const { return metrics_; }
  double written_at() const { return written_at_; }  // wall seconds of the last change

 private:
  Metrics metrics_;
  std::string unfinished_;  // the beginning of a line
  ino_t inode_ = 0;
  dev_t device_ = 0;
  off_t taken_ = 0;
  double written_at_ = 0;
};

struct Place {
  std::filesystem::path shown;  // the metrics.jsonl to show; empty: there is none yet
  std::filesystem::path suite;  // of the suite it belongs to, which decides when all is over; empty: it stands alone
};

// What to show of a run's folder, a suite's, or one that runs are made in: of several runs the one that was written last.
Place find_metrics(const std::filesystem::path& folder);

}  // namespace chorale::watch
