// Runs a pipeline schedule on the ranks of the pipeline axis. Each stage runs its actions in order, receives their inputs
// and sends their results. Without a pipeline, a rank runs its micro-batches by the same code, as a single stage.
//
//   stage 0   F0 ─▶ F1 ─▶ …        An action waits only for its own input. Its result is sent while the next action
//   stage 1      F0 ─▶ B0 ─▶ …     computes, and is freed once the receiver has it.
//
// When the receiver has it depends on the speed of both stages. So a result on its way counts as communication: the bytes
// of activations follow from the schedule alone. In a plan, each result is read as late as the schedule allows
// (read_at_latest), so a run never has more bytes on their way than planned.
#pragma once
#include <functional>
#include <map>
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
  std::vector<TokenCut> cuts;  // of the samples, if they are cut one by one (context.cuts)
  std::int64_t targets = 0;    // the number of targets that count
  Context context;
  Tape tape;
  std::optional<KeptInputs> kept_inputs;                // in a slow tier; else they are on the tape
  std::vector<std::function<void()>> weight_gradients;  // deferred computations, for schedules that split the backward pass
};

// A stage's part of the model, and how to begin a micro-batch on it.
struct PipelinePart {
  std::function<std::unique_ptr<MicroBatch>(std::int64_t micro_batch, std::int64_t chunk)> open;
  std::vector<Sequence>& chunks;
  Shape message;                            // the shape of the tensors sent between stages
  const std::vector<std::size_t>& read_by;  // of this stage: see read_at_latest()
  // Asked once before each micro-batch of a schedule without backward passes. True ends the run before it: this and all
  // later micro-batches are left out, and those before it are finished. All stages must give the same answers. Empty: never.
  std::function<bool(std::int64_t micro_batch)> ends_before = {};
};

// The measurements of one run of a schedule.
struct PipelineTimes {
  struct Passage {
    PipelineAction action;
    TimingEvent begins, ends;
    double exposed = 0;  // seconds that this pass spent waiting for collectives
  };
  std::vector<Passage> passages;
  double waited = 0;                  // seconds spent waiting for messages of other stages
  std::int64_t activation_bytes = 0;  // kept by the newest forward pass through the first chunk
};

StepPart::Kind part_kind(Pass pass);  // as a Meter of kernels calls it
PipelineTimes run_pipeline(const PipelineSchedule& schedule, Axis& axis, const PipelinePart& part, Clock& clock);
// Only forward passes. Each stage takes the micro-batches in the order in which they reach it: with several chunks, part p
// of micro-batch m comes in round m · chunks + p. No backward pass makes a stage wait for the stages after it. So that
// results do not pile up in memory, a stage waits while its neighbor has not read this many of them.
//
//   2 chunks   stage 0   F0a F1a F0b F2a F1b F3a F2b …     F1a and F0b both come in round 2: first the earlier chunk
//              stage 1   ·   F0a F1a F0b F2a F1b F3a …
inline constexpr std::size_t most_unread_results = 4;
PipelineSchedule forward_only(const PipelineShape& shape);

}  // namespace chorale
