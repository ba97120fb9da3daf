// What one step would ask of a rank, without the others and without a byte: the code of Training itself, run on phantom tensors, on a mesh
// that pretends. Nothing is estimated, so a plan can be held against a run, as integers.
//
//   Training on Mesh::pretended, PhantomMemory, a clock that stands still
//     ledger    →  bytes by category: held after the step (states), and at most
//     accounts  →  calls and bytes by axis and operation
//
// What only a run can know: under a pipeline a message stays until its taker has it, so a measured peak may hold some messages more.
#pragma once
#include <array>
#include <map>

#include "parallel/training.hpp"

namespace chorale {

struct PlanRequest {
  TrainingOptions options;
  Layout layout;
  ByAxis backends{{"", "shm"}}, algorithms{{"", "ring"}};  // what `auto` would take depends on the backend
};

struct RankPlan {
  std::int64_t parameters = 0;  // of this rank's stage and shard
  std::array<std::int64_t, categories> held{}, peak{};
  std::int64_t held_bytes = 0, peak_bytes = 0;  // of all categories; the peaks need not coincide
  std::map<std::string, Account> axes;
  double flops = 0;  // of the step, by the formula of ModelShape::flops_per_token; what is computed twice counts once
};

RankPlan plan_rank(const PlanRequest& request, int rank);
// Of a training that ran, or pretended to, one step since its axes' accounts were cleared.
RankPlan observed(const Training& training);

// The part of all stages' time that is idle, if stages take as long as their arithmetic and messages no time.
double planned_bubble(const TrainingOptions& options, const Layout& layout);

}  // namespace chorale
