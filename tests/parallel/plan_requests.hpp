// A plan of a small model, for tests.
#pragma once
#include "parallel/plan.hpp"

namespace chorale::test {

inline PlanRequest request_for(const Layout& layout, const char* algorithm, DType compute = DType::f32) {
  PlanRequest request{.options = {.shape = {"gpt2", 4, 6, 6, 48, 96, 12, 61}}, .layout = layout};
  request.options.global_batch = 12;
  request.options.micro_batch = layout.stages() > 1 ? 1 : 12 / layout.replicas();
  request.options.bucket_bytes = 20000;
  request.options.compute = compute;
  request.backends = {{"", "threads"}};
  request.algorithms = {{"", algorithm}};
  return request;
}

}  // namespace chorale::test
