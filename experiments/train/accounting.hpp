// Compares the bytes and calls of a whole run, from its first step to its end, with the plan.
//
//   planned    steps · (a step) − skipped · (a publication) + evaluations · (one), each of them run once on phantom tensors
//   measured   the accounts of the mesh's axes
//
// Both are integers and must be equal: one extra call on any rank makes the run end with exit code 3. It costs one phantom
// step per rank at the beginning, and one exchange at the beginning and at the end.
#pragma once
#include "experiments/run_record.hpp"
#include "parallel/plan.hpp"

namespace chorale::train {

class Accounting {
 public:
  // Collective: every rank plans its own part. Rank 0 records each rank's mesh coordinates and planned peak memory.
  Accounting(RunRecord& run, const Training& training, const PlanRequest& request, std::int64_t evaluation_samples);

  void stepped(const StepResult& result) { ++counts_.steps, counts_.skipped += result.skipped; }
  void evaluated() { ++counts_.evaluations; }
  // Collective: rank 0 records in /traffic what each rank sent, and reports it. True if all ranks sent what was planned.
  bool settle(RunRecord& run, const Training& training) const;

 private:
  RunPlan plan_;
  RunCounts counts_;
};

}  // namespace chorale::train
