#include "parallel/plan/plan.hpp"

#include <fmt/format.h>

#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/memory/memory.hpp"

namespace chorale {
namespace {

// In the forward pass, a matrix product costs 2 flops per matrix element and token. Attention costs 4 flops per pair of a
// query and a key that it sees, and per element of these. In the backward pass, the gradients cost twice as much.
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
    const auto sources = static_cast<double>(layout.along(experts & cut));  // number of ranks whose tokens an expert gets
    if (p->multiplies) flops += 6.0 * tokens * p->active * sources * static_cast<double>(elements_of(local)) / sharers;
    if (p->after_attention) flops += 12.0 * training.cut().pairs(context) * static_cast<double>(local[0]);
  }
  return flops;
}

void no_samples(std::int64_t, std::int64_t, const SampleRows&) {}

// A training on phantom tensors that pretends to be one rank of the layout.
class Pretence {
 public:
  Pretence(const PlanRequest& r, int rank, Script* script = nullptr)
      : nothing_({r.options.offload.to_host ? Device::Kind::cuda : Device::Kind::host, 0}, script),
        training_(unlimited(r.options, script),
                  Mesh::pretended(r.layout, rank, r.backends, r.algorithms,
                                  r.selector ? r.selector : std::make_shared<const Selector>(), r.hosts),
                  nothing_, still_) {
    if (!script) return;
    script->clear();  // the setup of the training is not part of a step
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
    if (training_.options().update == UpdateTime::delayed) training_.step(no_samples);  // the measured step ends its update
    sent_by([](Training& t) { t.step(no_samples); });
    return observed(training_);
  }
  std::int64_t offloaded() const { return training_.memory().tier_ledger().total(); }

 private:
  // Phantom tensors have no storage, so a plan needs no memory limit and no GPU. Offload to the host uses a phantom tier.
  static TrainingOptions unlimited(TrainingOptions options, Meter* meter) {
    return options.memory.limit = 0, options.kernels.device = nullptr, options.kernels.meter = meter, options;
  }

  PhantomMemory nothing_;
  VirtualClock still_;
  Training training_;
};

// Reduces the number of micro-batches without changing the peak memory, so that planning is faster. Under 1f1b, a stage has
// at most as many micro-batches in flight as there are stages, so more micro-batches do not raise the peak.
TrainingOptions briefly(TrainingOptions options, const Layout& layout) {
  if (layout.schedule == Layout{}.schedule)
    options.batch.global = std::min(options.batch.global, 2 * layout.stages() * layout.replicas() * options.batch.micro);
  return options;
}

RankPlan plan_stage(const TrainingOptions& options, const Layout& layout, std::int64_t stage) {
  return plan_rank({.options = options, .layout = layout}, fullest_rank(options, layout, stage));
}

// The index of the stage that needs the most memory, and the plan of its rank.
std::pair<std::int64_t, RankPlan> fullest_stage(const TrainingOptions& options, const Layout& layout) {
  std::pair<std::int64_t, RankPlan> fullest;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage) {
    RankPlan plan = plan_stage(options, layout, stage);
    if (plan.peak_bytes > fullest.second.peak_bytes) fullest = {stage, std::move(plan)};
  }
  return fullest;
}

bool go_together(const TrainingOptions& options, const Layout& layout) {
  try {
    check(options, layout);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A lower bound on a rank's bytes, computed without a plan: an equal share of the weights and gradients that stay in memory.
// It assumes that all weights belong to experts.
std::int64_t least_bytes(const TrainingOptions& options, const Layout& layout) {
  const auto share = [&](int zero) {
    const std::int64_t replicas = layout.zero >= zero ? layout.zero_ranks() : layout.expert_ranks();
    return options.shape.parameters() / (layout.shards() * layout.stages() * replicas);
  };
  const std::int64_t values = options.offload.parameters ? 0 : share(3),
                     gradients = options.offload.gradients ? 0 : share(2);
  const std::int64_t value = size_of(options.compute);
  return values * value + gradients * std::min(value, size_of(options.replicas.gradient_sums.value_or(options.compute)));
}

// At most 32 other layouts for the same number of ranks (there may be hundreds). `asked` with higher ZeRO stages comes
// first, then all others follow.
std::vector<Layout> others_of(const Layout& asked, const LayoutLimits& limits) {
  std::vector<Layout> layouts;
  for (Layout more = asked; asked.copies() > 1 && more.zero < 3;) ++more.zero, layouts.push_back(more);
  for (const Layout& other : all_layouts(limits))
    if (other.sizes != asked.sizes) layouts.push_back(other);
  layouts.resize(std::min<std::size_t>(layouts.size(), 32));
  return layouts;
}

// All layouts without repeated shards, each with the ZeRO stage that needs the least memory. A single replica needs no ZeRO,
// unless stage 3 was asked for, because then its value shards may live in a file.
std::vector<Layout> thrifty_layouts(const LayoutLimits& limits, const Layout& asked) {
  std::vector<Layout> layouts = all_layouts(limits);
  std::erase_if(layouts,
                [&](const Layout& l) { return l.zero != (l.copies() > 1 || asked.zero == 3 ? 3 : 0) || l.repeats() > 1; });
  return layouts;
}

std::string first_three(const std::vector<Layout>& layouts, const HasRoom& has_room) {
  std::vector<std::string> words;
  for (const Layout& layout : layouts)
    if (words.size() < 3 && has_room(layout)) words.push_back(to_string(layout));
  return either(words);
}

// "a", "a with b", "a with b and c"
std::string with(const std::vector<std::string>& words) {
  const std::string others = join({words.begin() + 1, words.end()}, " and ");
  return others.empty() ? words.front() : fmt::format("{} with {}", words.front(), others);
}

// Flags with which the model fits in memory: recomputation, smaller micro-batches, or offloading as little to a file as is
// enough. If no flag suffices alone, tries all together, and then ZeRO-3, with which everything can live in a file.
std::vector<std::string> flags_that_fit(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of) {
  const TrainingOptions asked = options_of(layout);
  std::vector<std::string> flags;
  const auto attempt = [&](const std::vector<std::string>& words, const Layout& on, Recompute recompute,
                           std::int64_t micro_batch, const OffloadOptions& offload) {
    const auto changed = [&](const Layout& other) {
      TrainingOptions options = options_of(other);
      options.recompute = recompute, options.batch.micro = micro_batch, options.offload = offload;
      return options;
    };
    const bool enough = has_room(on, changed);
    if (enough) flags.push_back(with(words));
    return enough;
  };
  const std::string recompute = "--recompute full", micro_batch = "--micro-batch-size 1";
  const bool can_recompute = asked.recompute != Recompute::full, can_divide = asked.batch.micro > 1;
  if (can_recompute) attempt({recompute}, layout, Recompute::full, asked.batch.micro, asked.offload);
  if (can_divide) attempt({micro_batch}, layout, asked.recompute, 1, asked.offload);
  OffloadOptions now = asked.offload;
  if (asked.kernels.device) now.to_host = true;
  const std::vector<OffloadOptions> more = more_in_tier(now, layout);
  for (const OffloadOptions& offload : more)
    if (attempt({words_of(offload)}, layout, asked.recompute, asked.batch.micro, offload)) break;
  std::vector<std::string> both;
  if (can_recompute) both.push_back(recompute);
  if (can_divide) both.push_back(micro_batch);
  if (flags.empty() && both.size() == 2) attempt(both, layout, Recompute::full, 1, asked.offload);
  const auto last = [&](const Layout& on, const OffloadOptions& offload, std::vector<std::string> words) {
    words.push_back(words_of(offload));
    if (flags.empty()) attempt(words, on, asked.recompute, asked.batch.micro, offload);
    words.insert(words.end(), both.begin(), both.end());
    if (flags.empty() && !both.empty()) attempt(words, on, Recompute::full, 1, offload);
  };
  if (!more.empty()) last(layout, more.back(), {});
  Layout sharded = layout;
  sharded.zero = 3;
  if (layout.zero < 3 && fits(sharded, limits)) last(sharded, more_in_tier(now, sharded).back(), {"--zero 3"});
  return flags;
}

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
  plan.tier_passes = training.tier_passes(), plan.tier_updates = training.tier_updates();
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

std::int64_t brief_peak(PlanRequest request, std::int64_t stage) {
  const Layout& l = request.layout;
  TrainingOptions& o = request.options;
  const std::int64_t sequences = l.replicas() * o.batch.micro;
  std::int64_t number = std::min(o.batch.global / sequences, 2 * l.stages());
  if (l.chunks > 1) number = std::max(l.stages(), number / l.stages() * l.stages());  // interleaving needs a multiple
  o.batch.global = number * sequences;
  return plan_rank(request, fullest_rank(o, l, stage)).peak_bytes;
}

std::int64_t planned_in_file(const PlanRequest& request, int rank) { return Pretence(request, rank).offloaded(); }

Script script_of(const PlanRequest& request, int rank, bool with_copies) {
  Script script(with_copies);
  Pretence(request, rank, &script).step();
  script.settle();
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
      const RankPlan both = observed(t);  // an evaluation may have more results in transit than a step
      plan.step.peak = both.peak, plan.step.at_peak = both.at_peak, plan.step.peak_bytes = both.peak_bytes;
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
  for (const auto& [axis, account] : planned)
    for (std::size_t i = 0; i < operations; ++i) {
      const Account::Entry &a = account.entries[i], &b = made.at(axis).entries[i];
      const bool exchanges = i == static_cast<std::size_t>(Collective::all_to_all);
      const bool routed = exchanges && axis != "cp";  // rows are sent to experts by a routing that a plan may not know
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

std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is) {
  const TrainingOptions options = options_of(layout);
  const std::int64_t limit = options.memory.limit;
  if (limit == 0) return std::nullopt;
  const auto [stage, plan] = fullest_stage(briefly(options, layout), layout);
  if (plan.peak_bytes <= limit) return std::nullopt;
  std::string overflows;
  std::vector<std::string> sum;
  std::int64_t so_far = 0;
  for (std::size_t c = 0; c < categories; ++c) {
    if (plan.peak[c] == 0) continue;
    sum.push_back(fmt::format("{} {}", category_names[c], human_bytes(plan.peak[c])));
    so_far += plan.peak[c];
    if (so_far > limit && overflows.empty()) overflows = category_names[c];
  }
  return Shortage{fmt::format("a rank has too little memory for its {}", overflows),
                  fmt::format("{}, a rank of stage {}: peak {} (peaks by category: {}); {} {}", to_string(layout), stage,
                              human_bytes(plan.peak_bytes), join(sum, ", "), limit_is, human_bytes(limit))};
}

void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is) {
  if (const auto shortage = shortage_of(layout, options_of, limit_is)) {
    const auto fits = [&](const Layout& other) { return has_room(other, options_of); };
    const std::string flags = either(flags_that_fit(layout, limits, options_of));
    std::string fix = how_to_fit(layout, limits, fits, flags.empty() ? "take a smaller model" : "");
    if (!flags.empty()) fix = fmt::format("try {}{}{}", flags, fix.empty() ? "" : ", or ", fix);
    throw NoRoom(Exit::usage, shortage->what, shortage->numbers, fix);
  }
}

bool has_room(const Layout& layout, const OptionsOf& options_of) {
  const TrainingOptions options = options_of(layout), brief = briefly(options, layout);
  if (!go_together(options, layout) || least_bytes(options, layout) > options.memory.limit) return false;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    if (plan_stage(brief, layout, stage).peak_bytes > options.memory.limit) return false;
  return true;
}

std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise) {
  constexpr std::int64_t most_ranks = 4096;
  if (const std::string words = first_three(others_of(layout, limits), has_room); !words.empty()) return "try " + words;
  for (LayoutLimits more = limits; more.world < most_ranks;) {
    more.world *= 2;
    if (const std::string words = first_three(thrifty_layouts(more, layout), has_room); !words.empty())
      return fmt::format("start {} ranks with as much memory each and try {}", more.world, words);
  }
  return otherwise;
}

double planned_bubble(const TrainingOptions& options, const Layout& layout) {
  const PipelineSchedule schedule = schedule_of(options, layout);
  double head = options.shape.flops_per_token();  // the flops that remain after subtracting those of the blocks
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
