// The policy for steps in which the loss or a gradient is NaN or Inf (--on-nan).
//
//   abort       the run ends. The error names the step, rank, layer, tensor and element
//   skip        the step changes no weight, and the run continues with the next samples
//   roll-back   the newest checkpoint is loaded, and the run continues with the samples after the failed step
//
// A run gives up if the policy cannot help: a weight itself is NaN (skip), there is no checkpoint (roll-back), or too many
// attempts in a row have failed. The table /mishaps records every skipped or rolled-back step.
#pragma once
#include <filesystem>
#include <string>

#include "experiments/common/run_record.hpp"
#include "parallel/step/first_nan.hpp"
#include "parallel/step/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

struct MishapRow {
  std::int64_t step = 0, next_step = 0;
  std::uint8_t action = 0;
  static auto columns() {
    return std::tuple{column("step", &MishapRow::step, "1", "training step whose loss or gradients were NaN or Inf"),
                      column("next_step", &MishapRow::next_step, "1", "the step with which training went on"),
                      column("action", &MishapRow::action, "", "what was done", {"skipped", "rolled_back"})};
  }
};

// Throws the step's error, extended by a line with the reason.
[[noreturn]] void give_up(const NotFinite& error, const std::string& why);

class NanPolicy {
 public:
  void declare(Options& options);
  void check(bool saves_or_loads) const;  // throws a usage error if the policy could never help
  // Collective. Called after a step has thrown. If the run cannot continue, throws the step's error again. `checkpoints`:
  // the path of the newest checkpoint; "": there is none. Returns the result of a skipped step; nullopt after a rollback.
  std::optional<StepResult> handle(const NotFinite& error, Training& training, RunRecord& run,
                                   const std::filesystem::path& checkpoints);
  void stepped() { skips_ = 0; }  // a step succeeded

 private:
  void note(RunRecord& run, const MishapRow& row);

  std::string name_ = "abort";
  int skips_ = 0, rolls_ = 0;  // number of skipped steps in a row, and of rollbacks to the same checkpoint
  std::int64_t rolled_to_ = -1;
  Table* table_ = nullptr;
};

}  // namespace chorale::train
