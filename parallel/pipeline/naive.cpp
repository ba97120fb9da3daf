// The baseline: a plain split of the layers. A micro-batch goes forward through all stages and back before the next one
// begins, so only one stage works at a time. One micro-batch is in flight. With p stages, the bubble is (p−1)/p of the time.
//
//   stage 0   F0 ·  ·  B0 F1 ·  ·  B1
//   stage 1   ·  F0 B0 ·  ·  F1 B1 ·
#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {

PipelineSchedule naive(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage)
    for (std::int64_t k = 0; k < shape.micro_batches; ++k) {
      schedule.forward(stage, k);
      schedule.backward(stage, k);
    }
  return schedule;
}

}  // namespace chorale::pipelines
