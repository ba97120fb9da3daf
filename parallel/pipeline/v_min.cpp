// V-Min (Qi et al. 2024, "Pipeline parallelism with controllable memory"): each stage holds two chunks. A micro-batch visits
// the first chunks of all stages from the first stage to the last, and then the second chunks from the last stage to the
// first. If a stage keeps the activations of its first chunk for a long time, it keeps the activations of its second chunk
// only briefly. So every stage has at most (p+4)/3 micro-batches in flight. The first stage of 1F1B has p micro-batches in
// flight. Weight gradients are separate actions, which fill idle slots. Let F, B and W of a micro-batch each take one unit
// of time on a stage. The bubble is then about 2p units, which is two thirds of 1F1B's bubble, 3(p−1).
//
//   stage 0   F0a         F0b B0b         B0a      one micro-batch: a is the model's first half, b its second; the loss is
//   stage 1       F0a F0b         B0b B0a          on stage 0
//
// All micro-batches follow one pattern with a period of 6 passes. Stage r begins F0a in slot r, F0b in slot 2p−1−r, B0b in
// slot 2p+r and B0a in slot 4p−1−r. No two of these slots are equal modulo 6, because they differ in parity or by 2p. If 6
// divides 2p, both backward passes are 2 slots later. Weight gradients take the next free slot. The schedule contains only
// the order of the slots, so empty slots take no time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "parallel/pipeline/schedule.hpp"

namespace chorale::pipelines {
namespace {

const Placement down_and_up{
    [](std::int64_t stages, const PartPlace& at) { return at.chunk == 0 ? at.stage : 2 * stages - 1 - at.stage; },
    [](std::int64_t stages, std::int64_t part) {
      return part < stages ? PartPlace{part, 0} : PartPlace{2 * stages - 1 - part, 1};
    },
};

PipelineSchedule plan_v_min(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  const std::int64_t p = shape.stages, period = 6, turn = 2 * p + (2 * p % period == 0 ? 2 : 0);
  for (std::int64_t stage = 0; stage < p; ++stage) {
    std::map<std::int64_t, PipelineAction> slots;
    const std::int64_t back = 2 * p - 1 - stage;
    for (std::int64_t k = 0; k < shape.micro_batches; ++k) {
      slots[period * k + stage] = {Pass::forward, k, 0};
      slots[period * k + back] = {Pass::forward, k, 1};
      slots[period * k + turn + stage] = {Pass::backward, k, 1};
      slots[period * k + turn + back] = {Pass::backward, k, 0};
    }
    for (const auto& [begins, action] : std::map(slots)) {
      if (action.kind != Pass::backward) continue;
      std::int64_t slot = begins + 1;
      while (slots.contains(slot)) ++slot;
      slots[slot] = {Pass::weights, action.micro_batch, action.chunk};
    }
    for (const auto& [begins, action] : slots) schedule.actions[static_cast<std::size_t>(stage)].push_back(action);
  }
  return schedule;
}

std::string v_min_misfit(const PipelineShape& shape) {
  return shape.chunks == 2 ? "" : fmt::format("it takes two chunks per stage, not {}", shape.chunks);
}

// The exact value of the 2p units above: the ends of the pattern save 2.5 units, or 1.5 if backward passes come later.
double bubble_of_v_min(const PipelineShape& s) {
  const double ends = s.stages % 3 == 0 && s.micro_batches > 1 ? 1.5 : 2.5;
  return s.stages == 1 ? 0 : (2 * static_cast<double>(s.stages) - ends) / 3;
}

double v_min_in_flight(const PipelineShape& s) {
  return std::min(static_cast<double>(s.micro_batches), (static_cast<double>(s.stages) + 4) / 3);
}

}  // namespace

PipelineAlgorithm v_min() {
  return {.name = "v-min",
          .make = plan_v_min,
          .about =
              "the model goes down p stages and back up: about two thirds of 1f1b's bubble, p/3 + 1 instead of p "
              "micro-batches in flight",
          .bubble = bubble_of_v_min,
          .in_flight = v_min_in_flight,
          .misfit = v_min_misfit,
          .least_chunks = 2,
          .placement = &down_and_up,
          .splits = true};
}

}  // namespace chorale::pipelines
