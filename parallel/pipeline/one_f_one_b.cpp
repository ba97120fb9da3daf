// 1F1B (PipeDream-Flush, Narayanan et al. 2021). With p stages, stage r begins with p−r−1 forward passes, one for each later
// stage. Then the stage alternates one forward and one backward pass. With m micro-batches, the bubble is (p−1)/(m+p−1) of
// the step time, as with GPipe. Stage r keeps the activations of at most min(m, p−r) micro-batches at the same time.
//
//   stage 0   F0 F1 ·  B0 F2 B1 ·  B2
//   stage 1   ·  F0 B0 F1 B1 F2 B2 ·
#include <algorithm>

#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

PipelineSchedule plan_1f1b(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  const std::int64_t m = shape.micro_batches;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const std::int64_t warm_up = std::min(shape.stages - stage - 1, m);
    for (std::int64_t k = 0; k < m + warm_up; ++k) {
      if (k < m) schedule.forward(stage, k);
      if (k >= warm_up) schedule.backward(stage, k - warm_up);
    }
  }
  return schedule;
}

}  // namespace

PipelineAlgorithm one_f_one_b() {
  return {.name = "1f1b",
          .make = plan_1f1b,
          .about = "forward and backward passes alternate as early as possible; few activations are kept",
          .bubble = [](const PipelineShape& s) { return static_cast<double>(s.stages - 1); },
          .in_flight = [](const PipelineShape& s) { return static_cast<double>(std::min(s.micro_batches, s.stages)); },
          .usual = true};
}

}  // namespace chorale::pipelines
