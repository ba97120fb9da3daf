// The loop of a training run. Every rank executes the loop, but only rank 0 logs and records.
//
//   step ─ tell all ranks ─ record ─ evaluate? ─ compare replicas? ─ save? ─ step …      until the last step or a signal
//    └ NaN or Inf: skip the step, go back to a checkpoint, or end the run (nan_policy.hpp)
#pragma once
#include <optional>
#include <string>

#include "experiments/common/run_record.hpp"
#include "experiments/train/accounting.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/keeping.hpp"
#include "experiments/train/nan_policy.hpp"
#include "experiments/train/product_peak.hpp"
#include "experiments/train/records.hpp"
#include "experiments/train/saving.hpp"
#include "experiments/train/stragglers.hpp"
#include "src/base/progress.hpp"
#include "src/base/signals.hpp"

namespace chorale::train {

// The options that control the loop.
struct LoopOptions {
  std::int64_t eval_interval = 0, eval_samples = 256, log_interval = 10, replica_interval = 100;
  Saving saving;
  Keeping keeping;
  NanPolicy on_nan;

  void declare(Options& options);
  std::int64_t eval_samples_of(const Dataset& data) const { return std::min(eval_samples, data.held_out()); }
};

class Loop {
 public:
  // The objects that the loop uses. Only the recording rank has `records` and `stragglers`. `loaded_from`: the checkpoint
  // that --load found, or "".
  struct Parts {
    Session& session;
    RunRecord& run;
    Training& training;
    const Dataset& data;
    std::optional<TrainRecords>& records;
    Accounting& accounting;
    ProductPeak& peak;
    Signals& signals;
    std::optional<Stragglers>& stragglers;
    const std::vector<RankFacts>& ranks;
    std::string loaded_from;
  };
  Loop(const Parts& parts, LoopOptions& options, std::int64_t last_step);

  std::string run();  // returns the final status for the record: "ok" or "stopped"

 private:
  std::optional<StepResult> step();
  bool report(const StepResult& result, double seconds);  // like evaluate(), returns whether a signal asks the run to stop
  bool evaluate();
  void compare_replicas();
  void exceed_peak(double flops);
  void say(const StepResult& result, const std::string& speed);

  Parts parts_;
  LoopOptions& options_;
  const std::int64_t last_step_;
  const ReadSamples read_;
  const Progress::Screen screen_;
  Progress progress_;
  const double began_;
};

// Records the peak that MFU refers to, and returns it as text.
std::string note_peak(RunRecord& run, const ProductPeak& peak);

}  // namespace chorale::train
