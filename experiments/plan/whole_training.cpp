#include "experiments/plan/whole_training.hpp"

#include <fmt/format.h>

#include "experiments/plan/wording.hpp"

namespace chorale::plan {
namespace {

struct BytesPerParameter {
  double values = 0, gradients = 0, optimizer = 0;
  double all() const { return values + gradients + optimizer; }
};

// The bytes per parameter on one rank that holds the complete model in memory.
BytesPerParameter on_one_rank(const PlanRequest& request) {
  PlanRequest one{.options = request.options, .layout = Layout{}};
  one.layout.axes = request.layout.axes;
  TrainingOptions& o = one.options;
  o.batch.global = o.batch.micro = 1;
  o.context = {};
  o.offload = {};
  o.exchange = {};
  o.update = UpdateTime::after;
  o.memory.partition_activations = o.memory.contiguous = false;
  o.memory.limit = 0;
  const RankPlan plan = plan_rank(one, 0);
  const auto of = [&](Category category) {
    return static_cast<double>(plan.held[static_cast<std::size_t>(category)]) / static_cast<double>(plan.parameters);
  };
  return {of(Category::params), of(Category::grads), of(Category::optimizer)};
}

// Formats bytes and their share of `all`: "4 (1/4)".
std::string part(double bytes, double all) { return fmt::format("{:.3g} (1/{:.3g})", bytes, all / bytes); }

// With many replicas, a rank keeps little more than values and gradients under ZeRO-1, and little more than values under
// ZeRO-2.
std::string kept_with_zero(const BytesPerParameter& b) {
  return fmt::format("each of many replicas keeps {} with ZeRO-1, {} with ZeRO-2, almost nothing with ZeRO-3",
                     part(b.values + b.gradients, b.all()), part(b.values, b.all()));
}

// The bytes that a rank sends to other replicas; −1: unknown, because the algorithm of a library sent some of them.
std::int64_t sent_by_replicas(const RankPlan& plan, const AxisTable& axes) {
  std::int64_t bytes = 0;
  for (const std::string& axis : axes.names_of(axes.dividing(Divides::batch)))
    for (const Account::Entry& entry : plan.axes.at(axis).entries) {
      if (entry.bytes < 0) return -1;
      bytes += entry.bytes;
    }
  return bytes;
}

}  // namespace

std::string words_for_states(const PlanRequest& request) {
  const BytesPerParameter b = on_one_rank(request);
  const auto parameters = static_cast<double>(request.options.shape.parameters());
  std::string words =
      fmt::format("states: {:.3g} bytes a parameter (values {:.3g}, gradients {:.3g}, optimizer {:.3g}), {} in all\n  {}",
                  b.all(), b.values, b.gradients, b.optimizer, words_for_bytes(b.all() * parameters), kept_with_zero(b));
  if (const TrainingOptions& o = request.options; size_of(o.compute) == 2 && o.optimizer.masters) {
    const BytesPerParameter published{b.values, b.values, b.optimizer};
    words += fmt::format("\n  with {} gradients, as papers count: {:.3g} bytes; {}", name_of(o.compute), published.all(),
                         kept_with_zero(published));
  }
  return words;
}

std::string words_for_time(const WholeTraining& training, const PlanRequest& request) {
  const TrainingOptions& o = request.options;
  const double flops = training.tokens * o.shape.flops_per_token();
  const double steps = training.tokens / static_cast<double>(o.batch.global * o.shape.sequence);
  const std::string words =
      fmt::format("{:.4g} billion tokens: {:.0f} steps, {:.3g} flops", training.tokens / 1e9, steps, flops);
  if (training.sustained == 0) return words;
  constexpr double hour = 3600, day = 24 * hour, year = 365.25 * day;
  const double alone = flops / training.sustained, ranks = static_cast<double>(request.layout.ranks());
  return words +
         fmt::format("; at {:.4g} TFLOP/s a rank, {} ranks take {:.1f} days: {:.0f} rank-hours, {:.1f} years of one rank",
                     training.sustained / 1e12, request.layout.ranks(), alone / ranks / day, alone / hour, alone / year);
}

std::string words_for_zero_traffic(const PlanRequest& request, const RankPlan& planned) {
  const Layout& l = request.layout;
  if (l.zero == 0 || l.replicas() == 1 || l.repeats() > 1 || l.context_ranks() > 1 ||
      request.options.shape.experts.count > 0)
    return "";
  PlanRequest plain = request;
  plain.layout.zero = 0;
  plain.options.offload = {};
  plain.options.memory.limit = 0;
  const std::int64_t with = sent_by_replicas(planned, *l.axes);
  const std::int64_t without = sent_by_replicas(plan_rank(plain, rank_of_stage(l, 0)), *l.axes);
  if (with <= 0 || without <= 0) return "";
  return fmt::format("ZeRO-{} sends {:.4g} times the bytes of plain replicas", l.zero,
                     static_cast<double>(with) / static_cast<double>(without));
}

}  // namespace chorale::plan
