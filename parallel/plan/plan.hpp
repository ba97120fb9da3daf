// The memory and traffic of one step on one rank, planned without peers and without allocating memory. The real code of
// Training runs on phantom tensors, which have no memory, and on a pretended mesh (pretended_axis.hpp). Nothing is
// estimated, so a run's counts must equal its plan exactly.
//
//   Training on Mesh::pretended, PhantomMemory, and a clock that stands still
//     ledger    →  bytes by category: held after the step, and the peak
//     accounts  →  calls and bytes by axis and operation
//
// Apart from rows that are routed to experts, every step sends the same bytes, with one exception: a skipped step has no new
// values to publish (Training::publish). So a run sends
//
//     steps · (bytes of a step) − skipped · (bytes of publishing) + evaluations · (bytes of an evaluation)
//
// Memory peaks are equal, too, except the peak of `comm`, which holds results in transit between pipeline stages. How long
// these results stay in transit depends on the speed of their receivers. The plan keeps them for as long as the schedule
// allows, so a run never holds more bytes than planned.
#pragma once
#include <array>
#include <optional>

#include "parallel/mesh/script.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

struct PlanRequest {
  TrainingOptions options;
  Layout layout;
  ByAxis backends{{"", "shm"}}, algorithms{{"", "ring"}};
  std::shared_ptr<const Selector> selector = nullptr;  // chooses algorithms for `auto`; null: by the cost model alone
  std::vector<int> hosts = {};                         // the host of each rank; empty: all ranks are on one host
};

struct RankPlan {
  std::int64_t parameters = 0;                          // number of parameters in this rank's stage and shard
  std::array<std::int64_t, categories> held{}, peak{};  // bytes by category
  // Bytes of all categories together. Categories may peak at different times, so peak_bytes may be less than the sum of
  // `peak`. peak_bytes is the sum of `at_peak`, the bytes of each category at the moment when the rank holds the most.
  std::array<std::int64_t, categories> at_peak{};
  std::int64_t held_bytes = 0, peak_bytes = 0;
  Accounts axes;
  std::array<std::int64_t, categories> offloaded{};  // the most bytes in a slow tier, by category
  TierTraffic tier_passes, tier_updates;             // bytes copied between the tier and memory
  // Flops of the step, by the formula of ModelShape::flops_per_token. Recomputation does not count. If all tensor-parallel
  // ranks repeat some work, its flops are divided among these ranks. So the flops of all ranks add up to the model's flops.
  double flops = 0;
};

// The rank that needs the most memory among the ranks of a stage: the rank with the largest shard and the most tokens.
int fullest_rank(const TrainingOptions& options, const Layout& layout, std::int64_t stage);
RankPlan plan_rank(const PlanRequest& request, int rank);
// The peak memory of a stage's fullest rank, planned with at most twice as many micro-batches as there are stages. Under
// 1f1b, interleaved and zb-h1, more micro-batches do not need more memory.
std::int64_t brief_peak(PlanRequest request, std::int64_t stage);
// The bytes that this rank keeps in a slow tier between steps, computed without planning a step. Activations that a step
// offloads are not included.
std::int64_t planned_in_file(const PlanRequest& request, int rank);
// The work and the calls of this rank in a step. The machine file of request.selector gives the prices of the calls.
// with_copies: whether the script includes the copies between memory and a slow tier.
Script script_of(const PlanRequest& request, int rank, bool with_copies = false);
// The memory, traffic and flops of a training that has run one step since clear_accounts(), for real or in a plan.
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
  Accounts publication, evaluation;  // publication: the traffic of Training::publish, which a skipped step does not call
  TierTraffic tier_evaluation, tier_roll_back;  // tier_roll_back: the traffic of undoing an update
  Accounts after(const RunCounts& counts) const;
  TierTraffic tier_after(const RunCounts& counts) const;
};

RunPlan plan_run(const PlanRequest& request, int rank, std::int64_t evaluation_samples);

// Describes the first difference; "" if there is none. Numbers of calls are always compared, but bytes only if both are
// known. An all_to_all must send exactly the bytes of the rows that, by its counts, leave this rank. These bytes depend on
// how tokens are routed to experts. The bytes of an all_to_all are compared with the plan only if the plan knows the
// routing.
std::string difference(const Accounts& planned, const Accounts& made, bool knows_routing);
// Describes the first difference between bytes copied to and from a slow tier; "" if there is none.
std::string difference(const TierTraffic& planned, const TierTraffic& made);
// Whether a plan knows how many rows each rank sends to each expert. A plan knows them only if the routing is forced. Even
// then, the dropped tokens depend on scores, and the rank that has a token may depend on documents. So if ranks divide
// sequences, a plan may not know which ranks send the rows.
bool knows_routing(const TrainingOptions& options, const Layout& layout);

// The idle fraction of all stages' time. The calculation assumes that a stage's time is proportional to its flops and that
// messages take no time.
double planned_bubble(const TrainingOptions& options, const Layout& layout);

}  // namespace chorale
