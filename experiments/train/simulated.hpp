// `train --backend simulated:NAME` simulates one step of a run in virtual time, on one process. The record of the simulation
// has the same tables as the record of a real run, so `compare` and `report` treat simulated runs like real runs. The table
// /train has the step time, /pipeline has the passes of the stages, and /memory has the planned bytes. An additional table
// /simulated shows how each stage spends its time.
//
//   machine of accelerators       the executor (parallel/prediction/system_step.hpp)
//   calibrated machine file       the prediction of a step (parallel/prediction/cpu_step.hpp), up to 63 ranks
#pragma once
#include "experiments/common/command.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::train {

class SimulatedRun {
 public:
  // A layout without dp has one replica. Throws a usage error if the step cannot be simulated, and NoRoom if the step needs
  // more memory than an accelerator has.
  SimulatedRun(const Flags& flags, const LayoutFlags& layout_flags, const OptionsOf& options_of);
  void record(Session& session, const std::string& run_dir) const;  // call it on one process

 private:
  void require_memory(std::int64_t limit) const;  // limit: from --memory-limit; 0: none
  std::string name_;
  Machine machine_;
  PlanRequest request_;
  std::vector<RankPlan> stages_;  // for each stage, the plan of the rank with the highest memory use
};

// Throws the usage error for options that need a real run.
[[noreturn]] void refuse_simulated(const std::string& name, int ranks);

}  // namespace chorale::train
