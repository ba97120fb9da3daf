// Compares the communication of a complete training run, in bytes and calls, with the plan.
//
//   planned    steps · S − skipped · P + evaluations · E, in bytes. S: sent in a step; P: the part of S that publishes the
//              updated weights; E: sent in an evaluation
//   measured   the counts of the mesh axes, from the first step to the end of the run
//
// The planned and the measured value are integers and must be equal: one extra call on any rank makes the run end with exit
// code 3. An f16 step that overflows is skipped, so it publishes nothing.
//
// Cost at the beginning: each rank runs one step, one publication of weights and, if the run evaluates, one evaluation.
// The step, the publication and the evaluation run on phantom tensors, which have a shape but no memory. Then the ranks
// exchange their plans. At the end of the run, the ranks exchange their counts.
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale::train {

class Accounting {
 public:
  // Collective. Every rank plans its own part. Rank 0 records each rank's mesh coordinates and planned memory.
  // `resident_before`: resident bytes of this process before the model existed.
  Accounting(RunRecord& run, Training& training, const PlanRequest& request, std::int64_t evaluation_samples,
             std::int64_t resident_before);

  void stepped(const StepResult& result) { counts_.count(result); }
  void evaluated() { ++counts_.evaluations; }
  // Excludes the run from the comparison, because the run sent bytes that no plan contains: "an evaluation was cut short".
  void leave_out(const std::string& why) { left_out_ = why; }
  // Collective. Compares the bytes and calls of each rank with its plan. Rank 0 records both in /traffic and reports the
  // result. Returns true, on all ranks, if every rank sent the planned bytes.
  bool settle(RunRecord& run, Training& training) const;

 private:
  void settle_memory(RunRecord& run, const Training& training) const;
  RunPlan plan_;
  std::int64_t resident_before_;
  RunCounts counts_;
  std::string left_out_;  // the reason why nothing is compared; "" if everything is compared
};

}  // namespace chorale::train
