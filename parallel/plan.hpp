// The memory and traffic of one step on one rank, planned without peers and without allocating. The code of Training itself
// runs on phantom tensors and on a mesh that pretends. Nothing is estimated, so a plan and a run are compared as integers.
//
//   Training on Mesh::pretended, PhantomMemory, a clock that stands still
//     ledger    →  bytes by category: held after the step (states), and the peak
//     accounts  →  calls and bytes by axis and operation
//
// All steps send the same, so a run sends: steps · (a step) − skipped · (a publication) + evaluations · (an evaluation).
//
// One thing only a run can know: a pipeline message stays allocated until its receiver has it, so a measured peak may
// contain a few more messages.
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
  std::shared_ptr<const Selector> selector = nullptr;  // chooses for `auto`; null: by the cost model alone
};

struct RankPlan {
  std::int64_t parameters = 0;  // of this rank's stage and shard
  std::array<std::int64_t, categories> held{}, peak{};
  std::int64_t held_bytes = 0, peak_bytes = 0;  // of all categories together, whose peaks need not coincide
  Accounts axes;
  // Flops of the step, by the formula of ModelShape::flops_per_token. Recomputation does not count, and work that all tensor
  // ranks repeat is divided among them. So the flops of all ranks add up to the model's.
  double flops = 0;
};

RankPlan plan_rank(const PlanRequest& request, int rank);
// There is too little memory. A suite records this as the layout's result, not as a mistake in its options. All ranks of a
// run throw it together, so MPI can be finalized.
class NoRoom : public Error {
  using Error::Error;
};

// How a rank of `layout` would exceed the memory limit of its options: the category that does not fit, and the sum. None if
// all ranks have room, or if there is no limit. One rank of each stage is planned, the one with the last shard. Another rank
// can only be larger by a block of the vocabulary; the ledger refuses that allocation in the run.
struct Shortage {
  std::string what, numbers;
};
using OptionsOf = std::function<TrainingOptions(const Layout&)>;
std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is);
// Throws NoRoom if there is a shortage, and suggests layouts that have room.
void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is = "the limit is");
// The fix: up to three layouts that have room on the same ranks. Otherwise the number of ranks is doubled, with as much
// memory each, until a layout has room. If none has, `otherwise`.
using HasRoom = std::function<bool(const Layout&)>;
std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise = "recompute activations, or take a smaller batch or model");
bool has_room(const Layout& layout, const OptionsOf& options_of);
// What a training did, or pretended to do, in one step since the accounts of its axes were cleared.
RankPlan observed(const Training& training);

struct RunCounts {
  std::int64_t steps = 0, skipped = 0, evaluations = 0;
};

struct RunPlan {
  RankPlan step;
  Accounts publication, evaluation;  // a skipped step sends no publication
  Accounts after(const RunCounts& counts) const;
};

RunPlan plan_run(const PlanRequest& request, int rank, std::int64_t evaluation_samples);

// Describes the first difference; "" if there is none. Calls are always compared, bytes only if both sides know them.
std::string difference(const Accounts& planned, const Accounts& made);

// The idle fraction of all stages' time, if stages take time in proportion to their flops and messages take none.
double planned_bubble(const TrainingOptions& options, const Layout& layout);

}  // namespace chorale
