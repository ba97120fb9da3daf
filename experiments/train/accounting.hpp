// Compares the communication of a whole training run, in bytes and calls, with the plan.
//
//   planned    steps · S − skipped · P + evaluations · E: what a rank sends in one step (S), in the part of a step that
//              publishes the updated weights (P), and in one evaluation (E)
//   measured   what the axes of the mesh counted from the first step to the end of the run
//
// Both are integers and must be equal: one extra call on any rank makes the run end with exit code 3. An f16 step that
// overflows is skipped: it publishes nothing.
//
// Cost at the beginning: each rank runs one step, one publication of weights and, if the run evaluates, one evaluation.
// These run on phantom tensors (with a shape but no memory). Then the ranks exchange their plans. At the end they exchange
// their counts.
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale::train {

class Accounting {
 public:
  // Collective: every rank plans its own part. Rank 0 records each rank's mesh coordinates and planned memory.
  // resident_before: resident bytes of this process before the model existed.
  Accounting(RunRecord& run, Training& training, const PlanRequest& request, std::int64_t evaluation_samples,
             std::int64_t resident_before);

  void stepped(const StepResult& result) { counts_.count(result); }
  void evaluated() { ++counts_.evaluations; }
  // Excludes the run from the comparison, because something was sent that no plan contains: "an evaluation was cut short".
  void leave_out(const std::string& why) { left_out_ = why; }
  // Collective: compares what each rank sent with its plan. Rank 0 records both in /traffic and reports the result. Returns,
  // on all ranks, whether all ranks sent what was planned.
  bool settle(RunRecord& run, Training& training) const;

 private:
  void settle_memory(RunRecord& run, const Training& training) const;
  RunPlan plan_;
  std::int64_t resident_before_;
  RunCounts counts_;
  std::string left_out_;  // why nothing is compared; "": everything is
};

}  // namespace chorale::train
