#include "experiments/plan/one_layout.hpp"

#include <fmt/format.h>

#include "experiments/plan/document.hpp"
#include "experiments/plan/expert_loads.hpp"
#include "experiments/plan/stage_tables.hpp"
#include "experiments/plan/time_on_system.hpp"
#include "experiments/train/prediction.hpp"
#include "experiments/train/shape_options.hpp"
#include "parallel/prediction/cpu_step.hpp"

namespace chorale::plan {
namespace {

std::string head_of(const AskedPlan& asked, const PlacedRequest& placed, double bubble, const PredictedCpuStep& predicted) {
  const PlanRequest& request = placed.request;
  const TrainingOptions& o = request.options;
  std::string head;
  for (const std::string& line : placed.choices)
    if (!line.empty()) head += line + "\n";
  head += fmt::format(
      "{}: {} ranks, {:.2f} million parameters{} in {}, {} sequences of {} tokens per step, micro-batches of {}\n"
      "bubble {:.2f} %, if stages take time in proportion to their flops\n"
      "time {}\n"
      "{}\n",
      to_string(request.layout), request.layout.ranks(), static_cast<double>(o.shape.parameters()) / 1e6,
      train::words_for_active(o.shape), name_of(o.compute), o.batch.global, o.shape.sequence, o.batch.micro, 100 * bubble,
      predicted      ? fmt::format("predicted by {}: {}", predicted.origin, train::in_words(predicted.time))
      : asked.system ? "predicted below, by " + origin_of(*asked.system)
                     : fmt::format("not predicted: {}; --machine names another machine, such as eos", predicted.why_not),
      words_for_states(request));
  if (asked.whole.tokens > 0) head += words_for_time(asked.whole, request) + "\n";
  return head;
}

void add_facts(Document& out, const PlanRequest& request, double bubble, const PredictedCpuStep& predicted) {
  const TrainingOptions& o = request.options;
  out.fact("layout", to_string(request.layout));
  out.fact("ranks", request.layout.ranks());
  out.fact("parameters", o.shape.parameters());
  out.fact("dtype", name_of(o.compute));
  out.fact("global_batch_size", o.batch.global);
  out.fact("micro_batch_size", o.batch.micro);
  out.fact("seq_length", o.shape.sequence);
  out.fact("bubble", bubble);
  if (predicted) out.fact("step_s", predicted.time.seconds);
  if (o.memory.limit > 0) out.fact("memory_limit_bytes", o.memory.limit);
}

void add_offloaded(Document& out, const TrainingOptions& o, const StageTable& offloaded) {
  const TextTable table = offloaded.table();
  if (table.rows() == 0) return;
  const bool to_host = o.offload.to_host;
  out.words(
      fmt::format("\n{}, and what moves between {} and memory in a step; exposed: nothing computes meanwhile "
                  "(--update {})\n",
                  to_host ? "on the host" : "in the file", to_host ? "the host" : "it", name_of(o.update)));
  out.table("offloaded", table);
}

}  // namespace

std::string print_layout(const AskedPlan& asked, const PlacedRequest& placed, const std::optional<Shortage>& shortage) {
  const PlanRequest& request = placed.request;
  const std::optional<System>& system = asked.system;
  const Layout& l = request.layout;
  const TrainingOptions& o = request.options;
  const Wording as(asked.format);
  Document out(asked.format);
  const StepRequest timed{.plan = request, .system = system.value_or(System{})};
  const PredictedStep on_system = system ? predict_step(timed) : PredictedStep{};
  if (!asked.timeline.empty()) draw(on_system, to_string(l), asked.timeline);
  const PredictedCpuStep predicted = system ? PredictedCpuStep{{}, "a system predicts it"} : predict_cpu_step(request);
  const double bubble = planned_bubble(o, l);
  add_facts(out, request, bubble, predicted);
  if (o.memory.limit > 0 || system) out.fact("fits", !shortage);

  StageTable memory = memory_table(as), traffic = traffic_table(as), offloaded = offloaded_table(o.offload, as);
  const std::string that_rank = fmt::format("replica 0, shard 0{}", l.context_ranks() > 1 ? ", context rank 0" : "");
  std::string zero_traffic;
  std::int64_t most = 0;  // largest memory peak of a rank, in bytes
  for (std::int64_t stage = 0; stage < l.stages(); ++stage) {
    const RankPlan plan = plan_rank(request, rank_of_stage(l, stage));
    most = std::max(most, plan.peak_bytes);
    if (stage == 0) zero_traffic = words_for_zero_traffic(request, plan);
    memory.add(stage, memory_of(plan, as));
    traffic.add(stage, traffic_of(plan, as));
    offloaded.add(stage, offloaded_by(plan, o.update, as));
  }
  out.words(head_of(asked, placed, bubble, predicted));
  const double seconds = system ? on_system.seconds : predicted ? predicted.time.seconds : -1;
  add_snapshot_costs(out, asked.snapshots, request, system, seconds);
  if (const std::string assumed = asked.assumptions(); !assumed.empty()) out.words("assumed: " + assumed + "\n");
  const double limit = asked.memory_limit ? static_cast<double>(*asked.memory_limit)
                       : system           ? system->accelerator.memory
                                          : 0;
  if (shortage)
    out.words(fmt::format("\nthe layout does not fit: {}\n", shortage->numbers));
  else if (limit > 0)
    out.words("\n" + words_for_room(static_cast<double>(most), limit) + "\n");
  if (system) {
    out.fact("step_s", on_system.seconds);
    out.fact("mfu", on_system.mfu());
    out.words("\n" + words_for_system(on_system, timed, asked.whole));
    out.table("time", time_table(on_system, timed, as));
  }
  out.words(fmt::format(
      "\nmemory of one rank of each stage: {}; params to states: held after a step; activations to peak: peaks of a "
      "step\n",
      that_rank));
  out.table("stages", memory.table());
  add_offloaded(out, o, offloaded);
  if (const std::string loads = words_for_expert_loads(o.shape, l, o.batch.micro); !loads.empty())
    out.words("\n" + loads + "\n");
  if (const TextTable sent = traffic.table(); sent.rows() > 0) {
    out.words(fmt::format("\nsent in a step by the same rank of each stage: {}\n", that_rank));
    out.table("traffic", sent);
  }
  if (!zero_traffic.empty()) out.words(zero_traffic + "\n");
  if (asked.places) asked.places->add_traffic(out, request, as);
  return out.print();
}

}  // namespace chorale::plan
