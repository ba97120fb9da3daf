#include "parallel/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/memory/memory.hpp"

namespace chorale {
namespace {

// In the forward pass, a matrix product costs 2 flops per matrix element and token. Attention costs 4 flops per query
// element and visible key. The backward pass costs twice as much as the forward pass.
double flops_per_sample(const Training& training) {
  const std::int64_t context = training.mesh().context().rank();
  const auto tokens = static_cast<double>(training.cut().tokens(context));
  const Layout& layout = training.mesh().layout();
  const AxisSet width = layout.axes->dividing(Divides::width);
  const AxisSet experts = layout.axes->dividing(Divides::experts, expert_grid);
  double flops = 0;
  for (const ParameterPointer& p : training.parameters()) {
    const Shape local = p->local_shape();
    const AxisSet cut = layout.axes->set_of(p->cut_by);
    const auto sharers = static_cast<double>(layout.along(width & ~cut));
    const auto sources = static_cast<double>(layout.along(experts & cut));  // number of ranks that send tokens to an expert
    if (p->multiplies) flops += 6.0 * tokens * p->active * sources * static_cast<double>(elements_of(local)) / sharers;
    if (p->after_attention) flops += 12.0 * training.cut().pairs(context) * static_cast<double>(local[0]);
  }
  return flops;
}

void no_samples(std::int64_t, std::int64_t, const SampleRows&) {}

// Runs the code of Training on phantom tensors, as if this process were one rank of the layout.
class Pretence {
 public:
  Pretence(const PlanRequest& r, int rank, Script* script = nullptr)
      : nothing_({r.options.offload.to_host ? Device::Kind::cuda : Device::Kind::host, 0}, script),
        training_(unlimited(r.options, script),
                  Mesh::pretended(r.layout, rank, r.backends, r.algorithms,
                                  r.selector ? r.selector : std::make_shared<const Selector>(), r.hosts, r.switches),
                  nothing_, still_) {
    if (!script) return;
    for (const auto& axis : training_.mesh().axes()) axis->write_in(*script);
  }

  // Returns the traffic of act(training).
  template <class Act>
  Accounts sent_by(Act&& act) {
    clear_accounts(training_.mesh());
    training_.clear_tier_traffic();
    act(training_);
    return accounts_of(training_.mesh());
  }
  RankPlan step() {
    // If updates are delayed, the measured step completes the update of the step before it.
    if (training_.options().update == UpdateTime::delayed) training_.step(no_samples);
    sent_by([](Training& t) { t.step(no_samples); });
    return observed(training_);
  }
  void record_step(Script& script) {
    const bool delayed = training_.options().update == UpdateTime::delayed;
    std::size_t calls = 0;
    for (int step = delayed ? -2 : 0; step <= 0; ++step) {  // a delayed update is that of the step before
      calls = script.calls().size();
      script.clear();
      training_.step(no_samples);
    }
    require(!delayed || calls == script.calls().size(), "equal steps make {} and {} calls", calls, script.calls().size());
    script.settle();
    if (delayed) script.begin_with_update();
  }
  std::int64_t offloaded() const { return training_.memory().tier_ledger().total(); }
  // The bytes of state_to_save() (parallel/state/resume.hpp): the weights and moments of which this rank is not a copy.
  std::int64_t saved() {
    training_.settle_update();
    std::int64_t bytes = 0;
    const auto add = [&](const Parameter& parameter, const Tensor& tensor) {
      if (training_.buckets().copied_along(parameter) == 0) bytes += tensor.bytes();
    };
    training_.optimizer().each_state(
        [&](const std::string&, const Owned& owned, const Tensor& tensor) { add(*owned.parameter, tensor); });
    for (const ParameterPointer& p : training_.balance().state()) add(*p, p->value);
    return bytes;
  }

 private:
  // Phantom tensors have no storage, so a plan needs no memory limit and no GPU. Offload to the host uses a phantom tier.
  static TrainingOptions unlimited(TrainingOptions options, Meter* meter) {
    options.memory.limit = 0;
    options.kernels.device = nullptr;
    options.kernels.meter = meter;
    return options;
  }

  PhantomMemory nothing_;
  VirtualClock still_;
  Training training_;
};

}  // namespace

RankPlan observed(const Training& training) {
  RankPlan plan;
  for (const ParameterPointer& p : training.parameters()) plan.parameters += elements_of(p->local_shape());
  const Ledger& ledger = training.memory().ledger();
  for (std::size_t c = 0; c < categories; ++c) {
    plan.held[c] = ledger.current(static_cast<Category>(c));
    plan.peak[c] = ledger.peak(static_cast<Category>(c));
    plan.at_peak[c] = ledger.at_peak(static_cast<Category>(c));
  }
  for (std::size_t c = 0; c < categories; ++c)
    plan.offloaded[c] = training.memory().tier_ledger().peak(static_cast<Category>(c));
  plan.tier_passes = training.tier_passes();
  plan.tier_updates = training.tier_updates();
  plan.held_bytes = ledger.total();
  plan.peak_bytes = ledger.total_peak();
  plan.axes = accounts_of(training.mesh());
  const std::int64_t share = training.options().batch.global / training.mesh().data().size();
  plan.flops = flops_per_sample(training) * static_cast<double>(share);
  return plan;
}

int fullest_rank(const TrainingOptions& options, const Layout& layout, std::int64_t stage) {
  const TokenCut cut(options.shape.sequence, layout.context_ranks(), options.context.cut);
  return rank_of_stage(layout, stage, true, cut.fullest());
}

RankPlan plan_rank(const PlanRequest& request, int rank) { return Pretence(request, rank).step(); }

RankPlan plan_memory(PlanRequest request, std::int64_t stage) {
  const Layout& layout = request.layout;
  const auto in_flight = [&](std::int64_t number) { return layout.schedule->in_flight(pipeline_of(layout, number)); };
  const std::int64_t all = micro_batches_of(request.options, layout), few = 2 * layout.stages();
  if (few < all && in_flight(few) == in_flight(all))
    request.options = with_micro_batches(std::move(request.options), layout, few);
  return plan_rank(request, fullest_rank(request.options, layout, stage));
}

std::int64_t planned_in_file(const PlanRequest& request, int rank) { return Pretence(request, rank).offloaded(); }
std::int64_t planned_to_save(const PlanRequest& request, int rank) { return Pretence(request, rank).saved(); }

Script script_of(const PlanRequest& request, int rank, bool with_copies) {
  Script script(with_copies);
  Pretence(request, rank, &script).record_step(script);
  return script;
}

RunPlan plan_run(const PlanRequest& request, int rank, std::int64_t evaluation_samples) {
  Pretence pretence(request, rank);
  RunPlan plan{.step = pretence.step()};
  plan.publication = pretence.sent_by([](Training& t) { t.publish(); });
  if (evaluation_samples > 0)
    plan.evaluation = pretence.sent_by([&](Training& t) {
      t.evaluate(no_samples, evaluation_samples);
      plan.tier_evaluation = t.tier_passes();
      const RankPlan both = observed(t);  // an evaluation can have more results in transit than a training step
      plan.step.peak = both.peak;
      plan.step.at_peak = both.at_peak;
      plan.step.peak_bytes = both.peak_bytes;
    });
  if (request.options.update == UpdateTime::speculative)
    pretence.sent_by([&](Training& t) {
      t.optimizer().roll_back(t.options().kernels.queue());
      plan.tier_roll_back = t.tier_updates();
    });
  return plan;
}

TierTraffic RunPlan::tier_after(const RunCounts& counts) const {
  TierTraffic sum;
  sum.add(step.tier_passes, counts.steps);
  sum.add(step.tier_updates, counts.updates);
  sum.add(tier_roll_back, counts.rolled_back);
  sum.add(tier_evaluation, counts.evaluations);
  return sum;
}

Accounts RunPlan::after(const RunCounts& counts) const {
  Accounts sum;
  const auto add = [&](const Accounts& accounts, std::int64_t times) {
    for (const auto& [axis, account] : accounts)
      for (std::size_t i = 0; i < operations; ++i) {
        Account::Entry& entry = sum[axis].entries[i];
        entry.calls += times * account.entries[i].calls;
        if (times == 0 || account.entries[i].calls == 0) continue;
        const auto sum = [&](std::int64_t a, std::int64_t b) { return a < 0 || b < 0 ? -1 : a + times * b; };
        entry.due += times * account.entries[i].due;
        entry.bytes = sum(entry.bytes, account.entries[i].bytes);
        entry.crossing = sum(entry.crossing, account.entries[i].crossing);
      }
  };
  add(step.axes, counts.steps);
  add(evaluation, counts.evaluations);
  add(publication, -counts.skipped);
  return sum;
}

bool knows_routing(const TrainingOptions& options, const Layout& layout) {
  const Experts& experts = options.shape.experts;
  if (!experts.forced() || layout.context_ranks() == 1) return experts.forced();
  const CutRow& cut = token_cut_for(options.context.cut, options.shape.sequence, layout.context_ranks());
  return experts.capacity == 0 && !(cut.by_work && options.batch.packed);
}

std::string difference(const TierTraffic& planned, const TierTraffic& made) {
  for (std::size_t c = 0; c < categories; ++c)
    for (const bool reads : {true, false}) {
      const std::int64_t a = (reads ? planned.read : planned.written)[c], b = (reads ? made.read : made.written)[c];
      if (a != b)
        return fmt::format("{} {}: planned {} bytes, made {}", category_names[c], reads ? "read" : "written", a, b);
    }
  return "";
}

std::string difference(const Accounts& planned, const Accounts& made, bool knows_routing) {
  const std::vector<std::string> context = all_axes().names_of(all_axes().dividing(Divides::tokens));
  for (const auto& [axis, account] : planned)
    for (std::size_t i = 0; i < operations; ++i) {
      const Account::Entry &a = account.entries[i], &b = made.at(axis).entries[i];
      const bool exchanges = i == static_cast<std::size_t>(Collective::all_to_all);
      // A plan may not know how many rows are sent to each expert. Ranks that divide sequences exchange known rows.
      const bool routed = exchanges && !std::ranges::count(context, axis);
      if (exchanges && b.bytes >= 0 && b.bytes != b.due)
        return fmt::format("{} {}: the rows that leave this rank are {} bytes, sent {}", axis, operation_name(i), b.due,
                           b.bytes);
      const bool counted = a.bytes >= 0 && b.bytes >= 0 && (!routed || knows_routing);
      if (a.calls != b.calls || (counted && a.bytes != b.bytes))
        return fmt::format("{} {}: planned {} calls and {} bytes, made {} and {}", axis, operation_name(i), a.calls, a.bytes,
                           b.calls, b.bytes);
      if (counted && a.crossing != b.crossing)
        return fmt::format("{} {}: planned {} bytes to other hosts, sent {}", axis, operation_name(i), a.crossing,
                           b.crossing);
    }
  return "";
}

double planned_bubble(const TrainingOptions& options, const Layout& layout) {
  const PipelineSchedule schedule = schedule_of(options, layout);
  double head = options.shape.flops_per_token();  // the model's flops minus the flops of its blocks
  PipelineSeconds seconds;
  std::int64_t block = 0;
  for (const std::int64_t blocks : blocks_of_parts(options.shape, schedule.parts())) {
    double flops = 0;
    for (const std::int64_t end = block + blocks; block < end; ++block) flops += options.shape.flops_per_token(block);
    head -= flops;
    seconds.parts.push_back({flops / 3, flops / 3, flops / 3});
  }
  PartSeconds& last = seconds.parts.back();
  for (double* part : {&last.forward, &last.backward, &last.weights}) *part += head / 3;
  return simulate(schedule, seconds).bubble();
}

}  // namespace chorale
