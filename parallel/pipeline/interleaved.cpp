// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM): each of p stages has v chunks of the model, so a stage's first
// result is ready in 1/v of the time. Micro-batches run in groups of p. In the forward pass, a group goes through the first
// chunk of every stage, then through the second, and so on. The backward pass goes from the last chunk to the first. The
// bubble is divided by v. In return, v times as many messages are sent, and stage r keeps the activations of up to
// 2(p−r−1) + (v−1)p + 1 chunks.
//
//   stage 0   F0a F1a F0b F1b ·   B0b ·   B1b B0a B1a     a: chunks in the model's first half, b: in its second
//   stage 1   ·   F0a F1a F0b B0b F1b B1b B0a B1a ·
#include <fmt/format.h>

#include <algorithm>

#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

PipelineSchedule plan(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  const std::int64_t p = shape.stages, v = shape.chunks, total = shape.micro_batches * v;
  // micro_batch(k) is the micro-batch of a stage's k-th forward (or backward) pass. turn(k) is the number of this stage's
  // chunks through which the micro-batch has already passed.
  const auto micro_batch = [&](std::int64_t k) { return k / (p * v) * p + k % p; };
  const auto turn = [&](std::int64_t k) { return k % (p * v) / p; };
  for (std::int64_t stage = 0; stage < p; ++stage) {
    const std::int64_t warm_up = std::min(2 * (p - stage - 1) + (v - 1) * p, total);
    for (std::int64_t k = 0; k < total + warm_up; ++k) {
      if (k < total) schedule.forward(stage, micro_batch(k), turn(k));
      if (k >= warm_up) schedule.backward(stage, micro_batch(k - warm_up), v - 1 - turn(k - warm_up));
    }
  }
  return schedule;
}

double real(std::int64_t n) { return static_cast<double>(n); }

std::string misfit(const PipelineShape& shape) {
  if (shape.chunks < 2) return "it needs two or more chunks per stage; with one it would be 1f1b";
  if (shape.micro_batches % shape.stages == 0) return "";
  return fmt::format("{} micro-batches are not a multiple of {} stages", shape.micro_batches, shape.stages);
}

}  // namespace

PipelineAlgorithm interleaved() {
  return {.name = "interleaved",
          .make = plan,
          .about = "1f1b over several chunks per stage: a smaller bubble, more messages",
          .bubble = [](const PipelineShape& s) { return real(s.stages - 1) / real(s.chunks); },
          .in_flight =
              [](const PipelineShape& s) {
                return std::min(real(s.micro_batches), real(s.stages) + real(s.stages - 1) / real(s.chunks));
              },
          .misfit = misfit,
          .least_chunks = 2,
          .usual = true};
}

}  // namespace chorale::pipelines
