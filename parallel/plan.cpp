#include "parallel/plan.hpp"

#include "parallel/assemble.hpp"
#include "src/memory/memory.hpp"

namespace chorale {
namespace {

// A product with a matrix is 2 operations an element and token, its two gradients twice as much; attention looks at half the sequence.
double flops_per_token(const Training& training) {
  const ModelShape& shape = training.options().shape;
  double flops = 0;
  for (const ParameterPointer& p : training.parameters()) {
    const Shape local = p->local_shape();
    const bool looked_up = p->name == "embedding.weight" && !(shape.tied && training.mesh().last_stage());
    if (p->name != "position.weight" && !looked_up) flops += 6.0 * static_cast<double>(elements_of(local));
    if (p->name.ends_with(".attention.out.weight")) flops += 6.0 * static_cast<double>(shape.sequence * local[0]);
  }
  return flops;
}

}  // namespace

RankPlan observed(const Training& training) {
  RankPlan plan;
  for (const ParameterPointer& p : training.parameters()) plan.parameters += elements_of(p->local_shape());
  const Ledger& ledger = training.ledger();
  for (std::size_t c = 0; c < categories; ++c) {
    plan.held[c] = ledger.current(static_cast<Category>(c));
    plan.peak[c] = ledger.peak(static_cast<Category>(c));
  }
  plan.held_bytes = ledger.total();
  plan.peak_bytes = ledger.total_peak();
  for (const auto& axis : training.mesh().axes()) plan.axes[axis->name()] = axis->account();
  const std::int64_t share = training.options().global_batch / training.mesh().data().size();
  plan.flops = flops_per_token(training) * static_cast<double>(share * training.options().shape.sequence);
  return plan;
}

RankPlan plan_rank(const PlanRequest& request, int rank) {
  PhantomMemory nothing;
  VirtualClock still;
  Training training(
      request.options,
      Mesh::pretended(request.layout, rank, request.backends, request.algorithms, std::make_shared<const Selector>()),
      nothing, still);
  for (const auto& axis : training.mesh().axes()) axis->clear_account();
  training.step([](std::int64_t, std::int64_t, std::span<std::int32_t>, std::span<std::int32_t>) {});
  return observed(training);
}

double planned_bubble(const TrainingOptions& options, const Layout& layout) {
  const PipelineSchedule schedule = schedule_of(options, layout);
  ModelShape taller = options.shape;
  ++taller.layers;
  const double block = taller.flops_per_token() - options.shape.flops_per_token();
  const double head = options.shape.flops_per_token() - block * static_cast<double>(options.shape.layers);
  PipelineSeconds seconds;
  for (const std::int64_t blocks : blocks_of_parts(options.shape, schedule.parts())) {
    const double third = static_cast<double>(blocks) * block / 3;
    seconds.parts.push_back({third, third, third});
  }
  PartSeconds& last = seconds.parts.back();
  for (double* part : {&last.forward, &last.backward, &last.weights}) *part += head / 3;
  return simulate(schedule, seconds).bubble();
}

}  // namespace chorale
