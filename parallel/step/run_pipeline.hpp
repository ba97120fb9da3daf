// Runs a pipeline schedule on the ranks of the pipeline axis. Each stage runs its actions in order, receives their inputs
// and sends their results. Without a pipeline, the same code runs the rank's micro-batches as a single stage.
//
//   stage 0   F0 ─▶ F1 ─▶ …        An action waits only for its own input. Its result is sent while the next action
//   stage 1      F0 ─▶ B0 ─▶ …     computes, and is freed once the receiver has it.
//
// The time at which a result is received depends on the speed of both stages. So a result in transit is counted as
// communication memory, not as an activation. Activation bytes therefore depend only on the schedule. A plan assumes that
// each result is received as late as the schedule allows (read_at_latest), so a run never has more bytes in transit than
// planned.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layers/sequence.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/mesh/axis.hpp"
#include "parallel/pipeline/simulate.hpp"
#include "src/math/timing_event.hpp"

namespace chorale {

// A micro-batch in flight on a stage: its context, and the tensors that its backward pass needs.
struct MicroBatch {
  MicroBatch(Context made, bool selective) : context(std::move(made)), tape(selective) {}
  MicroBatch(const MicroBatch&) = delete;  // the context points to the tape, and layers point to the context

  Tensor inputs;               // token ids, on the first stage
  std::vector<TokenCut> cuts;  // the partition of each sample's tokens, if samples have different partitions (context.cuts)
  std::int64_t targets = 0;    // number of unmasked targets
  Context context;
  Tape tape;
  std::optional<KeptInputs> kept_inputs;  // inputs of blocks if they are in a slow tier; nullopt if they are on the tape
  std::vector<std::function<void()>> weight_gradients;  // deferred computations, for schedules that split the backward pass
};

// A stage's part of the model, and a function that begins a micro-batch on this part.
struct PipelinePart {
  std::function<std::unique_ptr<MicroBatch>(std::int64_t micro_batch, std::int64_t chunk)> open;
  std::vector<Sequence>& chunks;
  Shape message;                            // the shape of the tensors sent between stages
  const std::vector<std::size_t>& read_by;  // for this stage: see read_at_latest()
  // Called once before each micro-batch of a schedule without backward passes. If the function returns true, this
  // micro-batch and all later micro-batches are not run, and earlier micro-batches are completed. The function must return
  // the same values on all stages. If the function is empty, all micro-batches are run.
  std::function<bool(std::int64_t micro_batch)> ends_before = {};
};

// The measurements of one run of a schedule.
struct PipelineTimes {
  struct Passage {
    PipelineAction action;
    TimingEvent begins, ends;
    double exposed = 0;  // time, in seconds, that this pass spent waiting for collectives
  };
  std::vector<Passage> passages;
  double waited = 0;                  // time, in seconds, spent waiting for messages of other stages
  std::int64_t activation_bytes = 0;  // activation bytes that the newest forward pass of the first chunk kept
};

StepPart::Kind part_kind(Pass pass);  // the kind that kernel meters use for this pass
PipelineTimes run_pipeline(const PipelineSchedule& schedule, Axis& axis, const PipelinePart& part, Clock& clock);
// A schedule of only forward passes. Each stage runs its passes in the order in which their inputs arrive. With several
// chunks, part p of micro-batch m runs in round m · chunks + p. Without backward passes, a stage never waits for later
// stages, so its results could accumulate in memory. Therefore a stage waits if `most_unread_results` of its results have
// not yet been received.
//
//   2 chunks   stage 0   F0a F1a F0b F2a F1b F3a F2b …     F1a and F0b are both in round 2: the earlier chunk is first
//              stage 1   ·   F0a F1a F0b F2a F1b F3a …
inline constexpr std::size_t most_unread_results = 4;
PipelineSchedule forward_only(const PipelineShape& shape);

}  // namespace chorale
