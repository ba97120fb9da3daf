// What one step would ask of a rank, without the others and without a byte: the code of Training itself, run on phantom tensors, on a mesh
// that pretends. Nothing is estimated, so a plan can be held against a run, as integers.
//
//   Training on Mesh::pretended, PhantomMemory, a clock that stands still
//     ledger    →  bytes by category: held after the step (states), and at most
//     accounts  →  calls and bytes by axis and operation
//
// All steps of a run send the same, so what a run sends is a sum: steps · (a step) − skipped · (a publication) + evaluations · (one of them).
//
// What only a run can know: under a pipeline a message stays until its taker has it, so a measured peak may hold some messages more.
#pragma once
#include <array>
#include <optional>

#include "parallel/training.hpp"
#include "src/base/error.hpp"

namespace chorale {

struct PlanRequest {
  TrainingOptions options;
  Layout layout;
  ByAxis backends{{"", "shm"}}, algorithms{{"", "ring"}};
  std::shared_ptr<const Selector> selector = nullptr;  // what auto asks, as in a run; none: one that knows costs alone
};

struct RankPlan {
  std::int64_t parameters = 0;  // of this rank's stage and shard
  std::array<std::int64_t, categories> held{}, peak{};
  std::int64_t held_bytes = 0, peak_bytes = 0;  // of all categories; the peaks need not coincide
  Accounts axes;
  // Of the step, by the formula of ModelShape::flops_per_token; what is computed twice counts once, what all tensor ranks compute is shared
  // among them: so the ranks' flops add up to the model's.
  double flops = 0;
};

RankPlan plan_rank(const PlanRequest& request, int rank);
// There is too little memory. A suite records that as the layout's result, not as a mistake in its options. All ranks of a run throw it together,
// so MPI can be finalized.
class NoRoom : public Error {
  using Error::Error;
};

// How a rank of `layout` would exceed the memory limit of its options: the category that overflows, and the sum. None if ranks have room, or no
// limit. One rank of each stage is planned: the one with the last shard. Only a block of the vocabulary can make another larger, and the ledger
// refuses that when it is allocated.
struct Shortage {
  std::string what, numbers;
};
using OptionsOf = std::function<TrainingOptions(const Layout&)>;
std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is);
// A usage error where there is one, with layouts that have room.
void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is = "the limit is");
// The fix: up to three layouts that have room on the same ranks, or else on the fewest more, by doubling, with as much memory each. If there are
// none, `otherwise`.
using HasRoom = std::function<bool(const Layout&)>;
std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise = "recompute activations, or take a smaller batch or model");
bool has_room(const Layout& layout, const OptionsOf& options_of);
// What a training did, or pretended to do, in one step since its axes' accounts were cleared.
RankPlan observed(const Training& training);

// How often what a run does was done.
struct RunCounts {
  std::int64_t steps = 0, skipped = 0, evaluations = 0;
};

struct RunPlan {
  RankPlan step;
  Accounts publication, evaluation;  // what a skipped step leaves out; what an evaluation sends
  Accounts after(const RunCounts& counts) const;
};

RunPlan plan_run(const PlanRequest& request, int rank, std::int64_t evaluation_samples);

// What differs first, in words; "" when nothing does. Bytes that one of the two could not count are not compared, calls are.
std::string difference(const Accounts& planned, const Accounts& made);

// The part of all stages' time that is idle, if stages take as long as their arithmetic and messages no time.
double planned_bubble(const TrainingOptions& options, const Layout& layout);

}  // namespace chorale
