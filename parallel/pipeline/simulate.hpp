// How long a pipeline schedule takes, when it is known how long its parts do: when every action begins and ends, how long each stage is
// idle. The same form holds a run that was measured, so the two are drawn side by side.
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

struct PartSeconds {
  double forward = 1, backward = 1, weights = 1;  // weights: added to backward where the schedule has them together
};

struct PipelineSeconds {
  std::vector<PartSeconds> parts;  // of the model, in order
  double message = 0;              // from the end of an action until another stage may begin what needs it
};

// Where a stage's whole share takes 1 forward, 1 for the input's gradient and 1 for the weights', in equal chunks.
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
  double seconds() const;                 // from the first event's beginning to the last one's end
  double idle(std::int64_t stage) const;  // seconds
  double bubble() const;                  // the part of all stages' time in which they are idle
};

PipelineTimeline simulate(const PipelineSchedule& schedule, const PipelineSeconds& seconds);

}  // namespace chorale
