#include "experiments/plan/estimates.hpp"

#include <algorithm>
#include <numeric>

#include "layers/optimizer.hpp"

namespace chorale::plan {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

std::int64_t number_of_micro_batches(const SearchRequest& request, const Found& found) {
  return request.step.plan.options.batch.global / (found.layout.replicas() * found.micro_batch);
}

}  // namespace

Estimates::Estimates(const SearchRequest& request)
    : request_(request), moments_(static_cast<double>(rule_of(request.step.plan.options.optimizer)->moments().size())) {}

const BlockEstimate& Estimates::blocks_of(const Found& found) {
  const Layout& l = found.layout;
  const auto [at, is_new] =
      known_.try_emplace({l.shards(), l.context_ranks(), l.expert_ranks(), l.sequence, found.micro_batch, found.recompute});
  if (!is_new) return at->second;
  // If only every second block has experts, the two models have two and four blocks.
  double seconds[2], peak[2], held[2], parameters[2];
  const std::int64_t every =
      request_.step.plan.options.shape.experts.count > 0 ? request_.step.plan.options.shape.experts.every : 1;
  for (const std::size_t i : {0U, 1U}) {
    const std::int64_t blocks = (static_cast<std::int64_t>(i) + 1) * every;
    StepRequest small = request_.step;
    TrainingOptions& o = small.plan.options;
    const std::int64_t replicas = l.expert_ranks() / std::gcd(l.expert_ranks(), l.context_ranks());
    o.shape.layers = blocks;
    o.batch.micro = found.micro_batch;
    o.batch.global = replicas * found.micro_batch;
    o.recompute = found.recompute;
    o.memory.limit = 0;
    o.offload.parameters = o.offload.gradients = o.offload.optimizer = false;  // states are counted separately
    small.plan.layout = Layout{};
    small.plan.layout.size_dividing(Divides::batch) = replicas;
    small.plan.layout.size_dividing(Divides::width) = l.shards();
    small.plan.layout.size_dividing(Divides::tokens) = l.context_ranks();
    small.plan.layout.size_dividing(Divides::experts) = l.expert_ranks();
    small.plan.layout.sequence = l.sequence;
    const RankPlan plan = plan_rank(small.plan, 0);
    const ClassTime time = predict_step(small).step.classes.at(0);
    seconds[i] = time.seconds - time.kernels.seconds[static_cast<std::size_t>(Spent::update)];
    for (const std::string& axis : l.axes->names_of(l.axes->dividing(Divides::batch, both_grids)))
      if (const auto waits = time.waits.find(axis); waits != time.waits.end())
        seconds[i] -= waits->second;  // for the small model's own replicas
    peak[i] = real(plan.peak_bytes);
    held[i] = real(plan.held_bytes);
    parameters[i] = real(plan.parameters);
  }
  BlockEstimate& b = at->second;
  const auto number = static_cast<double>(every);
  const auto of_block = [&](const double(&values)[2]) { return std::max(0.0, values[1] - values[0]) / number; };
  const double kept[2] = {peak[0] - held[0], peak[1] - held[1]};
  b.block_seconds = of_block(seconds);
  b.ends_seconds = std::max(0.0, seconds[0] - number * b.block_seconds);
  b.block_parameters = of_block(parameters);
  b.ends_parameters = parameters[0] - number * b.block_parameters;
  b.block_experts = experts_of_block(l);
  b.block_parameters -= b.block_experts;
  b.block_bytes = of_block(kept);
  b.ends_bytes = std::max(0.0, kept[0] - number * b.block_bytes);
  return b;
}

// The mean number of expert parameters that a rank has per block. The number follows from the parameters of the E - k
// experts that a token skips.
double Estimates::experts_of_block(const Layout& layout) const {
  const ModelShape& shape = request_.step.plan.options.shape;
  const double all = real(shape.experts.count), skipped = all - real(shape.experts.chosen);
  if (skipped <= 0) return 0;
  return real(shape.parameters() - shape.active_parameters()) * all / skipped /
         real(shape.layers * layout.expert_ranks() * layout.shards());
}

// `shards`: the number of ranks among which ZeRO shards these parameters.
double Estimates::bytes_of_states(const Found& found, double parameters, double shards) const {
  const TrainingOptions& o = request_.step.plan.options;
  const double each = real(size_of(o.compute)), value = o.offload.parameters ? 0 : each;
  const double sums = o.offload.gradients ? 0 : real(size_of(o.replicas.gradient_sums.value_or(DType::f32)));
  const double state = std::max(each, 4.0), states = moments_ + (o.optimizer.masters && each < state ? 1 : 0);
  const double optimizer = o.offload.optimizer ? 0 : state * states, n = shards;
  const int z = found.layout.zero;
  return parameters * (value / (z >= 3 ? n : 1) + sums / (z >= 2 ? n : 1) + optimizer / (z >= 1 ? n : 1));
}

// Returns the time in seconds of all collectives among the ranks that hold copies of the same parameters. Subtracts the part
// that overlaps passes. `pass`: the time of a micro-batch on a stage, in seconds.
double Estimates::seconds_of_sums(const Found& found, double parameters, double pass) const {
  const Layout& l = found.layout;
  const System& s = request_.step.system;
  const double copies = real(l.copies()), n = l.zero > 0 ? real(l.zero_ranks()) : copies;
  if (copies == 1) return 0;
  const TrainingOptions& o = request_.step.plan.options;
  const double value = real(size_of(o.compute)), sums = real(size_of(o.replicas.gradient_sums.value_or(DType::f32)));
  const std::int64_t inside = std::max<std::int64_t>(1, s.host.accelerators / l.shards());  // a group's ranks per host
  const bool crosses = n > real(inside) && l.ranks() / l.stages() > s.host.accelerators;
  const double among_hosts = std::min(
      s.host.link, s.network.adapter * s.network.adapters / s.host.accelerators * real(inside) * s.network.collective);
  const double rate = crosses ? among_hosts : s.host.link;
  const double far = crosses ? 1 / real(inside) : 0;  // the share of a ring's messages that go to other hosts
  const double around = (n - 1) * (s.host.latency + far * (s.network.latency - s.host.latency));
  const auto ring = [&](double bytes, double calls) { return parameters * bytes * (n - 1) / n / rate + calls * around; };
  const double units = real(o.shape.layers / l.stages()), micro_batches = real(number_of_micro_batches(request_, found));
  // A bucket never holds a part of a matrix, and a block has about four matrices.
  const double buckets = 1 + std::min(parameters * sums / static_cast<double>(o.replicas.bucket()), 4 * units);
  const double backward = pass / 2;  // reductions that begin during the last backward pass overlap it
  // With hybrid shards, gradient shards are also summed between the groups.
  const double groups = copies / n;
  const double between = groups > 1 ? 2 * parameters / n * sums * (groups - 1) / groups / among_hosts : 0;
  switch (l.zero) {
    case 0: return std::max(0.0, ring(2 * sums, 2 * buckets) - backward);
    case 1: return std::max(0.0, between + ring(sums, buckets) - backward) + ring(value, buckets);
    case 2: return micro_batches * ring(sums, units) + between + ring(value, buckets);
    default:  // the gathers overlap passes, but the reductions of a unit's gradients do not
      return micro_batches * (std::max(0.0, ring(2 * value, 2 * units) - pass) + ring(sums, units)) + between;
  }
}

void Estimates::estimate(Found& found) {
  const BlockEstimate& b = blocks_of(found);
  const Layout& l = found.layout;
  const TrainingOptions& o = request_.step.plan.options;
  const System& s = request_.step.system;
  const double m = real(number_of_micro_batches(request_, found)), p = real(l.stages()), v = real(l.chunks);
  const double blocks = real((o.shape.layers + l.stages() - 1) / l.stages());
  const double pass = blocks * b.block_seconds + b.ends_seconds;  // as if one stage had both the embedding and the head
  const double message = real(found.micro_batch * o.shape.sequence * o.shape.width * size_of(o.compute)) /
                         real(l.context_ranks() * (l.sequence ? l.shards() : 1));
  const bool far = l.ranks() / l.stages() >= s.host.accelerators;
  // A message delays its micro-batch only if the stage has no other chunk to compute during the transfer.
  const double moves = v > 1 ? 0 : message / (far ? s.network.adapter : s.host.link);
  const double hop = p == 1 ? 0 : moves + s.software.message;
  const PipelineShape pipeline = pipeline_of(l, number_of_micro_batches(request_, found));
  const double bubble = l.schedule->bubble(pipeline) * blocks * b.block_seconds;
  const double parameters = blocks * b.block_parameters + b.ends_parameters / (p > 1 ? 2 : 1);
  const double experts = blocks * b.block_experts;
  found.estimate = bubble + m * (pass + 2 * v * hop) + seconds_of_sums(found, parameters + experts, pass);
  const double shards = real(l.zero_ranks()), of_experts = std::max(1.0, shards / real(l.expert_ranks()));
  found.bytes = bytes_of_states(found, parameters, shards) + bytes_of_states(found, experts, of_experts) +
                l.schedule->in_flight(pipeline) * blocks * b.block_bytes + b.ends_bytes;
}

}  // namespace chorale::plan
