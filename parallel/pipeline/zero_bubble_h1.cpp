// ZB-H1 (Qi et al. 2023, "Zero bubble pipeline parallelism"): the backward pass is split in two actions, B and W. The
// previous stage waits for B, the gradient of the input. No stage waits for W, the gradients of the weights, so stage r
// defers W by r micro-batches. A gradient then reaches the first stage sooner, because each stage delays the gradient only
// by B instead of by B and W. The deferred W actions fill the idle time at the end.
//
// Let F, B and W also denote the durations of these passes. With p stages, the bubble is (p−1)(F+B−W), which is a third of
// 1F1B's bubble if F = B = W. A layer's inputs are kept until its W has run. So every stage keeps the activations of min(m,
// p) micro-batches, as the first stage does under 1F1B. Here m is the number of micro-batches.
//
//   stage 0   F0 F1 ·  B0 W0 F2 B1 W1 B2 W2
//   stage 1   ·  F0 B0 F1 B1 W0 F2 B2 W1 W2
#include <algorithm>

#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

PipelineSchedule plan_zero_bubble(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  const std::int64_t m = shape.micro_batches;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const std::int64_t warm_up = std::min(shape.stages - stage - 1, m), late = warm_up + stage;
    for (std::int64_t k = 0; k < m + late; ++k) {
      if (k < m) schedule.forward(stage, k);
      if (k >= warm_up && k < m + warm_up) schedule.backward(stage, k - warm_up);
      if (k >= late) schedule.weights(stage, k - late);
    }
  }
  return schedule;
}

// A third of 1F1B's bubble. Too few micro-batches do not fill the pipeline, so some of 1F1B's bubble is left.
double bubble_of_zero_bubble(const PipelineShape& s) {
  return static_cast<double>(s.stages - 1 + std::max<std::int64_t>(0, s.stages - s.micro_batches)) / 3;
}

}  // namespace

PipelineAlgorithm zero_bubble_h1() {
  return {
      .name = "zb-h1",
      .make = plan_zero_bubble,
      .about = "1f1b with deferred weight gradients, which fill the bubble; all stages keep as much as 1f1b's first stage",
      .bubble = bubble_of_zero_bubble,
      .in_flight = [](const PipelineShape& s) { return static_cast<double>(std::min(s.micro_batches, s.stages)); },
      .splits = true};
}

}  // namespace chorale::pipelines
