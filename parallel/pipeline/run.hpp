// Runs a pipeline schedule on the ranks of the pipeline axis: each stage does its actions in order, receives what they need and sends what they
// make. One stage alone runs the same way, so this is also how a rank without a pipeline goes through its micro-batches.
//
//   stage 0   F0 ─▶ F1 ─▶ …        an action waits for its message and nothing else; what it made is on its way while the next one
//   stage 1      F0 ─▶ B0 ─▶ …     computes, and is dropped when it has arrived
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "layers/sequence.hpp"
#include "parallel/axis.hpp"
#include "parallel/pipeline/simulate.hpp"
#include "src/math/timing_event.hpp"

namespace chorale {

// What a stage has of one micro-batch while it is in flight: where it stands, and what its backward pass will need.
struct MicroBatch {
  MicroBatch(Context made, bool selective) : context(std::move(made)), tape(selective) {}
  MicroBatch(const MicroBatch&) = delete;  // the context knows the address of the tape, and layers that of the context

  Tensor inputs;             // token ids, on the first stage
  std::int64_t targets = 0;  // that are counted
  Context context;
  Tape tape;
  std::vector<std::function<void()>> weight_gradients;  // put off
};

struct PipelinePart {
  std::function<std::unique_ptr<MicroBatch>(std::int64_t micro_batch, std::int64_t chunk)> open;
  std::vector<Sequence>& chunks;
  Shape message;  // of what goes from stage to stage
};

// What a run saw.
struct PipelineTimes {
  struct Passage {
    PipelineAction action;
    TimingEvent begins, ends;
    double exposed = 0;  // seconds of waits for collectives inside
  };
  std::vector<Passage> passages;
  double waited = 0;                  // for messages of other stages
  std::int64_t activation_bytes = 0;  // that one micro-batch's forward pass through the first chunk left
};

PipelineTimes run_pipeline(const PipelineSchedule& schedule, Axis& axis, const PipelinePart& part, Clock& clock);
// Forward passes alone, one micro-batch after the other.
PipelineSchedule forward_only(const PipelineShape& shape);

}  // namespace chorale
