#include "experiments/plan/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "parallel/pipeline/schedule.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "parallel/prediction/system_step.hpp"
#include "parallel/step/assemble.hpp"

namespace chorale::plan {
namespace {

// Returns the layout with every pipeline schedule and with 1, 2, 4, … chunks per stage. Combinations that the schedule does
// not allow are left out.
std::vector<Layout> with_schedules(const Layout& layout, const LayoutLimits& limits) {
  if (layout.stages() == 1) return {layout};
  std::vector<Layout> all;
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    for (std::int64_t chunks = 1; layout.stages() * chunks <= limits.shape.layers; chunks *= 2) {
      Layout other = layout;
      other.schedule = &row;
      other.chunks = chunks;
      if (chorale::fits(other, limits)) all.push_back(other);
    }
  return all;
}

std::int64_t sent_by(const RankPlan& plan) {
  std::int64_t bytes = 0;
  for (const auto& [axis, account] : plan.axes)
    for (const Account::Entry& entry : account.entries) {
      if (entry.bytes < 0) return -1;
      bytes += entry.bytes;
    }
  return bytes;
}

struct StageCosts {
  std::int64_t memory, states, sent;
};

StageCosts costs_of(const PlanRequest& request, std::int64_t stage) {
  const RankPlan plan = plan_rank(request, fullest_rank(request.options, request.layout, stage));
  const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
  return {plan.peak_bytes, held(Category::params) + held(Category::grads) + held(Category::optimizer), sent_by(plan)};
}

// Once a pipeline is full, every additional micro-batch adds the same bytes, under every schedule: none under 1f1b, its
// activations under gpipe. So the costs of a step with many micro-batches are extrapolated linearly from two shorter steps.
// Planning a GPT-3 step of 1536 sequences takes a second; planning the two shorter steps takes 10 ms.
StageCosts costs_of_long_step(const PlanRequest& request, std::int64_t stage) {
  const std::int64_t micro_batches = micro_batches_of(request.options, request.layout), stages = request.layout.stages();
  if (micro_batches <= 3 * stages) return costs_of(request, stage);
  const auto costs_with = [&](std::int64_t fewer) {
    PlanRequest brief = request;
    brief.options = with_micro_batches(std::move(brief.options), brief.layout, fewer);
    return costs_of(brief, stage);
  };
  const StageCosts two = costs_with(2 * stages), three = costs_with(3 * stages);
  const auto grown = [&](std::int64_t a, std::int64_t b) { return b + (b - a) / stages * (micro_batches - 3 * stages); };
  return {grown(two.memory, three.memory), three.states, three.sent < 0 ? -1 : grown(two.sent, three.sent)};
}

bool same_but_for_schedule(const Layout& a, Layout b) {
  b.schedule = a.schedule;
  b.chunks = a.chunks;
  return a == b;
}

// Whether `one` is at least as good as `other` in all costs. If all costs are equal, the layout that comes first in the list
// is considered better.
bool beats(const std::vector<Candidate>& all, std::size_t one, std::size_t other) {
  return one != other && all[one].no_worse(all[other]) && (one < other || !all[other].no_worse(all[one]));
}

}  // namespace

bool Candidate::no_worse(const Candidate& other) const {
  const bool no_slower = (seconds < 0) == (other.seconds < 0) && seconds <= other.seconds;
  return sent_bytes >= 0 && sent_bytes <= other.sent_bytes && memory_bytes <= other.memory_bytes && bubble <= other.bubble &&
         no_slower;
}

std::vector<Layout> legal_layouts(const LayoutLimits& limits, const OptionsOf& options_of,
                                  const std::function<bool(const Layout&)>& wanted) {
  std::vector<Layout> legal;
  for (const Layout& layout : all_layouts(limits)) {
    if (layout.copies() == 1 && layout.zero > 0) continue;  // ZeRO has nothing to shard
    Layout hpz = layout;
    hpz.hpz = layout.zero == 3 && layout.repeats() > 1;
    for (const Layout& one : hpz.hpz ? std::vector{layout, hpz} : std::vector{layout})
      for (const Layout& scheduled : with_schedules(one, limits))
        if (wanted(scheduled) && go_together(options_of(scheduled), scheduled)) legal.push_back(scheduled);
  }
  return legal;
}

Candidate weigh(const PlanRequest& request) {
  constexpr double digits = 1e9;  // the bubble is rounded, because the last bits can differ between equal schedules
  const double bubble = std::round(planned_bubble(request.options, request.layout) * digits) / digits;
  Candidate all{.layout = request.layout, .bubble = bubble};
  for (std::int64_t stage = 0; stage < request.layout.stages(); ++stage) {
    const StageCosts here = costs_of_long_step(request, stage);
    all.memory_bytes = std::max(all.memory_bytes, here.memory);
    all.state_bytes = std::max(all.state_bytes, here.states);
    all.sent_bytes = here.sent < 0 || all.sent_bytes < 0 ? -1 : std::max(all.sent_bytes, here.sent);
  }
  if (const auto& machine = request.selector; machine && machine->machine().system)
    all.seconds = predict_step({.plan = request, .system = *machine->machine().system}).seconds;
  else if (const PredictedCpuStep predicted = predict_cpu_step(request))
    all.seconds = predicted.time.seconds;
  else
    all.why_not = predicted.why_not;
  return all;
}

Choices in_order(std::vector<Candidate> candidates, std::int64_t memory_limit) {
  for (Candidate& c : candidates) {
    c.share = memory_limit == 0 ? 0 : static_cast<double>(c.memory_bytes) / static_cast<double>(memory_limit);
    c.fits = c.share <= 1;
  }
  // If costs are equal, layouts with the default schedule come first, so that these layouts win.
  std::ranges::stable_sort(candidates, {}, [](const Candidate& c) {
    return std::tuple(!c.fits, c.seconds < 0, c.seconds, c.bubble, c.sent_bytes, c.memory_bytes,
                      c.layout.schedule != Layout{}.schedule);
  });
  Choices choices;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    bool schedule_beaten = false;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      if (!beats(candidates, k, i)) continue;
      schedule_beaten |= same_but_for_schedule(candidates[k].layout, candidates[i].layout);
      if (candidates[i].rival.empty()) candidates[i].rival = to_string(candidates[k].layout);
    }
    if (schedule_beaten)
      ++choices.schedules_left_out;
    else
      choices.rows.push_back(candidates[i]);
  }
  std::ranges::stable_sort(choices.rows, {}, [](const Candidate& c) { return std::pair(!c.fits, !c.rival.empty()); });
  return choices;
}

}  // namespace chorale::plan
