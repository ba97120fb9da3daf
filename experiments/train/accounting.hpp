// What a run sends, held against what was planned: counted from its first step on, settled at its end.
//
//   planned    steps · (a step) − skipped · (a publication) + evaluations · (one), each of them run once on phantom tensors
//   measured   the accounts of the mesh's axes
//
// Both are integers, so nothing is tolerated: a call too many, on any rank, and the run ends with exit code 3. It costs a
// phantom step of this rank at the beginning, and one exchange at either end.
#pragma once
#include "experiments/run_record.hpp"
#include "parallel/plan.hpp"

namespace chorale::train {

class Accounting {
 public:
  // Collective: every rank plans its own part, rank 0 records where in the mesh each is, and the memory it should need.
  Accounting(RunRecord& run, const Training& training, const PlanRequest& request, std::int64_t evaluation_samples);

  void stepped(const StepResult& result) { ++counts_.steps, counts_.skipped += result.skipped; }
  void evaluated() { ++counts_.evaluations; }
  // Collective: rank 0 records what each rank sent, in /traffic, and says it. Whether all of them sent what was planned.
  bool settle(RunRecord& run, const Training& training) const;

 private:
  RunPlan plan_;
  RunCounts counts_;
};

}  // namespace chorale::train
