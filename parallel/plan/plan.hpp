// Plans the memory and traffic of one step on one rank, without peers and without allocating memory. The real code of
// Training runs on phantom tensors, which have no memory, and on a simulated mesh (Mesh::pretended), which has no peers.
// Nothing is estimated, so the counts of a run must equal the plan exactly.
//
//   Training on Mesh::pretended, PhantomMemory and a constant clock
//     ledger    →  bytes by category: held after the step, and the peak
//     accounts  →  calls and bytes by axis and operation
//
// Apart from rows that are routed to experts, every step with an update sends the same number of bytes. A skipped step sends
// fewer bytes, because it does not publish updated parameters (Training::publish). So a run sends
//
//     steps · (bytes of a step) − skipped · (bytes of publishing) + evaluations · (bytes of an evaluation)
//
// Planned and measured memory peaks are equal, too. The only exception is the category `comm`, which holds results in
// transit between pipeline stages. The time that these results stay in transit depends on the speed of their receivers. The
// plan keeps each result for as long as the schedule allows, so a run never holds more bytes than planned.
#pragma once

#include <chorale/plan.hpp>
#include "parallel/mesh/script.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

struct PlanRequest {
  TrainingOptions options;
  Layout layout;
  ByAxis backends{{"", "shm"}}, algorithms{{"", "ring"}};
  std::shared_ptr<const Selector> selector = nullptr;  // chooses algorithms for `auto`; if it is null, the cost model alone
                                                       // chooses
  std::vector<int> hosts = {};                         // the host of each rank; if it is empty, all ranks are on one host
  std::vector<int> switches = {};  // the leaf switch of each rank; if it is empty, all ranks are under one leaf switch
};

// Returns the rank of a stage that needs the most memory: the rank with the largest shard and the most tokens.
int fullest_rank(const TrainingOptions& options, const Layout& layout, std::int64_t stage);
RankPlan plan_rank(const PlanRequest& request, int rank);
// Plans the memory of a stage's fullest rank. If the schedule's row says that more than two micro-batches per stage are not
// in flight at once, a step with so few is planned: its memory is that of the complete step, but its traffic is less.
RankPlan plan_memory(PlanRequest request, std::int64_t stage);
// Returns the bytes that this rank keeps in a slow tier between steps. No step is planned, so activations that a step
// offloads are not included.
std::int64_t planned_in_file(const PlanRequest& request, int rank);
// Returns the bytes of this rank's parts in a checkpoint or a snapshot, without headers. No step is planned.
std::int64_t planned_to_save(const PlanRequest& request, int rank);
// The work and the calls of this rank in a step. The predicted times of calls come from the machine file of
// `request.selector`. `with_copies` states whether the script includes the copies between memory and a slow tier.
Script script_of(const PlanRequest& request, int rank, bool with_copies = false);
// Returns the memory, traffic and flops of a Training that has made one step since clear_accounts(). The step can be real or
// planned.
RankPlan observed(const Training& training);

struct RunCounts {
  std::int64_t steps = 0, skipped = 0, evaluations = 0;
  std::int64_t updates = 0, rolled_back = 0;
  void count(const StepResult& step) {
    ++steps;
    skipped += step.skipped;
    updates += step.updates;
    rolled_back += step.rolled_back;
  }
};

struct RunPlan {
  RankPlan step;
  Accounts publication, evaluation;  // publication: the traffic of Training::publish. A skipped step does not call publish
  TierTraffic tier_evaluation, tier_roll_back;  // tier_roll_back: the traffic of undoing an update
  Accounts after(const RunCounts& counts) const;
  TierTraffic tier_after(const RunCounts& counts) const;
};

RunPlan plan_run(const PlanRequest& request, int rank, std::int64_t evaluation_samples);

// Describes the first difference; "" if there is none. Numbers of calls are always compared. Bytes are compared only if both
// values are known. An all_to_all is checked in two ways. The bytes sent must equal the bytes of the rows that this rank
// must send, according to the row counts of the call. If the plan knows how tokens are routed to experts, the bytes sent
// must also equal the plan.
std::string difference(const Accounts& planned, const Accounts& made, bool knows_routing);
// Describes the first difference between bytes copied to and from a slow tier; "" if there is none.
std::string difference(const TierTraffic& planned, const TierTraffic& made);
// Whether a plan knows how many rows each rank sends to each expert. The routing must be forced. Even with forced routing,
// there are two exceptions. With a capacity, scores determine which tokens are dropped. If ranks divide sequences, the
// documents can determine which rank has a token.
bool knows_routing(const TrainingOptions& options, const Layout& layout);

// Returns the idle fraction of the total time of all stages. Assumes that a stage's time is proportional to its flops, and
// that messages take no time.
double planned_bubble(const TrainingOptions& options, const Layout& layout);

}  // namespace chorale
