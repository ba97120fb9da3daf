// One start of the training run: its rows, read from its metrics.jsonl while it runs, and the times at which it began, had
// opened its record and had done its first step.
#pragma once
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "experiments/common/growing_file.hpp"
#include "experiments/train/records.hpp"

namespace chorale::launch {

class StartedRun {
 public:
  // `folder`: the folder in which the run makes its own folder.
  StartedRun(std::filesystem::path folder, double began);

  struct News {
    std::vector<train::TrainRow> steps;
    std::vector<train::EvalRow> evaluations;
  };
  News read(double now);  // the rows since the last call

  double began() const { return began_; }
  double opened() const { return opened_; }          // NaN until the ranks have opened their record
  double first_step() const { return first_step_; }  // NaN until a step is done
  double load_seconds() const { return load_seconds_; }
  bool loaded_from_memory() const { return from_memory_; }
  double step_seconds() const;                                 // the median of the newest steps; NaN if there are too few
  std::int64_t newest_step() const { return newest_step_; }    // −1: none yet
  std::int64_t first_number() const { return first_number_; }  // the number of its first step; 0: none yet
  const std::string& status() const { return status_; }        // "", "running", "ok", "stopped" or "failed"
  const std::filesystem::path& run() const { return run_; }    // the run's own folder, or "" until it exists

 private:
  void find_run();

  std::filesystem::path folder_, run_;
  std::vector<std::filesystem::path> earlier_;  // run folders of earlier starts
  GrowingFile metrics_;
  double began_, opened_ = absent, first_step_ = absent, load_seconds_ = absent;
  std::int64_t newest_step_ = -1, first_number_ = 0;
  std::string status_;
  bool from_memory_ = false;
  std::vector<double> step_times_;
  static constexpr double absent = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace chorale::launch
