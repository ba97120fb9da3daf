// Simulates a pipeline schedule from the times of its parts: when every action begins and ends, and how long each stage is
// idle. A measured run has the same form, so both are drawn side by side.
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

struct PartSeconds {
  double forward = 1, backward = 1, weights = 1;  // `weights` counts with `backward` unless the schedule splits them
};

struct PipelineSeconds {
  std::vector<PartSeconds> parts;  // of the model, in order
  double message = 0;              // from the end of an action to the earliest start of its taker on another stage
};

// Each stage takes 1 for its forward pass, 1 for the input's gradient and 1 for the weights', in equal chunks.
PipelineSeconds equal_parts(const PipelineShape& shape);

struct PipelineEvent {
  std::int64_t stage = 0;
  PipelineAction action;
  double begins = 0, ends = 0;
};

struct PipelineTimeline {
  std::int64_t stages = 1, chunks = 1;
  std::vector<PipelineEvent> events;  // in any order

  double begins() const;                  // of the first event
  double seconds() const;                 // from the first beginning to the last end
  double idle(std::int64_t stage) const;  // seconds
  double bubble() const;                  // the idle fraction of all stages' time
};

PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineSeconds& seconds);

}  // namespace chorale
