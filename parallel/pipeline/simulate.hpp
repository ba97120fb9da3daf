// Simulates a pipeline schedule, given the duration of each pass of each model part. The result states when every action
// begins and ends, and how long each stage is idle. Measured runs are stored in the same structs, so simulated and measured
// runs can be drawn side by side.
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

struct PartSeconds {
  double forward = 1, backward = 1, weights = 1;  // an undivided backward pass takes `backward` + `weights`
};

struct PipelineSeconds {
  std::vector<PartSeconds> parts;  // one entry per model part, in order
  double message = 0;  // minimum time, in seconds, between the end of an action and the start of the action that needs its
                       // result
};

// On every stage, a micro-batch takes one unit of time for the forward pass, one for the input gradient and one for the
// weight gradients. Each of these times is divided equally among the stage's chunks.
PipelineSeconds equal_parts(const PipelineShape& shape);

struct PipelineEvent {
  std::int64_t stage = 0;
  PipelineAction action;
  double begins = 0, ends = 0;
};

struct PipelineTimeline {
  std::int64_t stages = 1, chunks = 1;
  std::vector<PipelineEvent> events;  // in any order

  double begins() const;                  // the time at which the first event begins
  double seconds() const;                 // time from the beginning of the first event to the end of the last event
  double idle(std::int64_t stage) const;  // time, in seconds, in which the stage computes nothing
  double bubble() const;                  // the idle fraction of all stages' time
};

PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineSeconds& seconds);

}  // namespace chorale
