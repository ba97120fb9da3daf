// GPipe (Huang et al. 2019) runs all micro-batches forward, one after another, and then all micro-batches backward. With p
// stages and m micro-batches, the bubble is (p−1)/(m+p−1) of the step time, and every stage keeps the activations of all m
// micro-batches. The backward passes run in the same order as the forward passes, so each stage frees the oldest activations
// first, as in 1F1B.
//
//   stage 0   F0 F1 F2 ·  ·  B0 B1 B2
//   stage 1   ·  F0 F1 F2 B0 B1 B2 ·
#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

PipelineSchedule plan_gpipe(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    for (std::int64_t k = 0; k < shape.micro_batches; ++k) schedule.forward(stage, k);
    for (std::int64_t k = 0; k < shape.micro_batches; ++k) schedule.backward(stage, k);
  }
  return schedule;
}

}  // namespace

PipelineAlgorithm gpipe() {
  return {.name = "gpipe",
          .make = plan_gpipe,
          .about = "all forward passes, then all backward passes; every activation is kept",
          .bubble = [](const PipelineShape& s) { return static_cast<double>(s.stages - 1); },
          .in_flight = [](const PipelineShape& s) { return static_cast<double>(s.micro_batches); },
          .listed_in = ListedIn::tables};
}

}  // namespace chorale::pipelines
