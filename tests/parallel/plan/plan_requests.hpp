// Plan requests for a small model, and the comparison of a plan with a real step. Several tests use this file.
#pragma once
#include "parallel/plan/plan.hpp"

namespace chorale::test {

inline PlanRequest request_for(const Layout& layout, const char* algorithm, DType compute = DType::f32) {
  PlanRequest request{.options = {.shape = {ModelFamily::gpt2, 4, 6, 6, 48, 96, 12, 61}}, .layout = layout};
  request.options.batch.global = 12;
  request.options.batch.micro = layout.stages() > 1 ? 1 : 12 / layout.replicas();
  request.options.replicas.bucket_bytes = 20000;
  request.options.compute = compute;
  request.backends = {{"", "threads"}};
  request.algorithms = {{"", algorithm}};
  return request;
}

// Compares memory use after the step and peak memory use. Pipeline messages in flight (`comm`) are allowed to take less
// memory than planned.
inline std::string difference_of_memory(const RankPlan& plan, const RankPlan& seen) {
  for (std::size_t c = 0; c < categories; ++c) {
    if (plan.held[c] != seen.held[c])
      return fmt::format("{}: planned to hold {} bytes after the step, held {}", category_names[c], plan.held[c],
                         seen.held[c]);
    const bool may_be_less = c == static_cast<std::size_t>(Category::comm);
    if (may_be_less ? seen.peak[c] > plan.peak[c] : seen.peak[c] != plan.peak[c])
      return fmt::format("{}: planned a peak of {} bytes, measured {}", category_names[c], plan.peak[c], seen.peak[c]);
  }
  return seen.peak_bytes <= plan.peak_bytes
             ? ""
             : fmt::format("planned a peak of {} bytes, measured {}", plan.peak_bytes, seen.peak_bytes);
}

inline std::string difference_of_steps(const RankPlan& plan, const RankPlan& seen, bool knows_routing) {
  const std::string sent = difference(plan.axes, seen.axes, knows_routing);
  return sent.empty() ? difference_of_memory(plan, seen) : sent;
}

}  // namespace chorale::test
