// A system whose numbers are easy to reckon with, and requests for it.
#pragma once
#include "parallel/planner/step.hpp"

namespace chorale::test {

// Hosts of four accelerators. Large products run at 100 TFLOP/s, memory at 1 TB/s, links at 100 and 10 GB/s.
inline System small_system() {
  System system;
  system.accelerator = {.name = "toy", .memory = 80e9, .units = 10, .bandwidth = 1e12};
  system.accelerator.products = {{.type = "bf16", .flops = 1e14}, {.type = "fp8", .flops = 2e14}};
  system.host = {.accelerators = 4, .link = 100e9};
  system.network = {.adapters = 4, .adapter = 10e9};
  return system;
}

// GPT with parts of equal size: four sequences a micro-batch would be eight a step on two replicas.
inline StepRequest small_step(const std::string& layout, std::int64_t batch = 16) {
  StepRequest request{.system = small_system()};
  TrainingOptions& o = request.plan.options;
  o.shape = {.layers = 8, .heads = 8, .groups = 8, .width = 512, .ffn = 2048, .sequence = 128, .vocabulary = 1024};
  o.shape.equal_parts = true;
  o.compute = DType::bf16;
  o.micro_batch = 1, o.global_batch = batch;
  request.plan.layout = parse_layout(layout, 0);
  request.plan.backends = {{"", "mpi"}}, request.plan.algorithms = {{"", "ring"}, {"world", "auto"}};
  request.plan.selector = std::make_shared<const Selector>();
  return request;
}

}  // namespace chorale::test
