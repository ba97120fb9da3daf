// A system of accelerators with round numbers, and requests for predictions on this system.
#pragma once
#include "parallel/prediction/system_step.hpp"

namespace chorale::test {

// Hosts of four accelerators. Large matrix products run at 100 TFLOP/s. The bandwidth is 1 TB/s for memory, and 100 and 10
// GB/s for links.
inline System small_system() {
  System system;
  system.accelerator = {.name = "toy", .memory = 80e9, .units = 10, .bandwidth = 1e12};
  system.accelerator.products = {{.type = "bf16", .flops = 1e14}, {.type = "fp8", .flops = 2e14}};
  system.host = {.accelerators = 4, .link = 100e9};
  system.network = {.adapters = 4, .adapter = 10e9};
  return system;
}

// A GPT with micro-batches of one sequence. 2, 3, 4 or 8 ranks can divide the width and the vocabulary evenly.
inline StepRequest small_step(const std::string& layout, std::int64_t batch = 16) {
  StepRequest request{.system = small_system()};
  TrainingOptions& o = request.plan.options;
  o.shape = {.layers = 8, .heads = 24, .groups = 24, .width = 768, .ffn = 3072, .sequence = 128, .vocabulary = 1152};
  o.shape.equal_parts = true;
  o.compute = DType::bf16;
  o.batch.micro = 1;
  o.batch.global = batch;
  request.plan.layout = parse_layout(layout, 0);
  request.plan.backends = {{"", "mpi"}};
  request.plan.algorithms = {{"", "ring"}, {"world", "auto"}};
  request.plan.selector = std::make_shared<const Selector>();
  return request;
}

}  // namespace chorale::test
