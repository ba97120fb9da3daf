// The baseline: a plain split of the layers. A micro-batch goes forward and backward through all stages before the next
// micro-batch begins, so only one stage works at a time. One micro-batch is in flight. With p stages, the bubble is (p−1)/p
// of the step time.
//
//   stage 0   F0 ·  ·  B0 F1 ·  ·  B1
//   stage 1   ·  F0 B0 ·  ·  F1 B1 ·
#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

PipelineSchedule plan_naive(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage)
    for (std::int64_t k = 0; k < shape.micro_batches; ++k) {
      schedule.forward(stage, k);
      schedule.backward(stage, k);
    }
  return schedule;
}

}  // namespace

PipelineAlgorithm naive() {
  return {.name = "naive",
          .make = plan_naive,
          .about = "one micro-batch at a time goes forward and backward through all stages",
          .bubble = [](const PipelineShape& s) { return static_cast<double>((s.stages - 1) * s.micro_batches); },
          .in_flight = [](const PipelineShape&) { return 1.0; },
          .listed_in = ListedIn::none};
}

}  // namespace chorale::pipelines
