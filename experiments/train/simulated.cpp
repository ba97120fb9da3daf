#include "experiments/train/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "experiments/common/each.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/common/time_shares.hpp"
#include "experiments/train/gantt.hpp"
#include "experiments/train/prediction.hpp"
#include "experiments/train/records.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "parallel/prediction/prefetch.hpp"
#include "parallel/prediction/system_step.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

// The time that the ranks of each class spend in a step, by kind. If the machine file has no accelerators, each class is a
// single rank.
struct Simulated {
  double seconds = 0, peak_flops = 0;  // flops per second of all ranks; 0: unknown
  std::vector<std::string> classes;    // "stage 0"
  std::vector<double> ranks;           // number of ranks in each class
  std::vector<std::string> kinds;      // "products", "wait: dp" …
  std::vector<double> spent;           // time in seconds, by class and kind
  std::vector<double> sent;            // bytes that all ranks of each class sent; empty if unknown
  PipelineTimeline timeline = {};
  std::string words;

  double mean_of(const std::function<bool(const std::string&)>& counts) const {
    double sum = 0;
    for (std::size_t i = 0; i < spent.size(); ++i)
      if (counts(kinds[i % kinds.size()])) sum += ranks[i / kinds.size()] * spent[i];
    return sum / std::accumulate(ranks.begin(), ranks.end(), 0.0);
  }
};

Simulated on_accelerators(const PlanRequest& request, const System& system) {
  const PredictedStep step = predict_step({.plan = request, .system = system});
  Simulated s{.seconds = step.seconds, .peak_flops = step.peak_flops, .timeline = step.step.timeline};
  for (std::size_t c = 0; c < step.ranks.classes.size(); ++c) {
    const RankClass& ranks = step.ranks.classes[c];
    s.classes.push_back(fmt::format("stage {}", stage_of(request.layout, ranks.rank)));
    s.ranks.push_back(static_cast<double>(ranks.ranks));
    s.sent.push_back(s.ranks.back() * static_cast<double>(step.step.classes[c].sent));
    for (const auto& [kind, seconds] : shares_of(step, c)) {
      if (c == 0) s.kinds.push_back(kind);
      s.spent.push_back(seconds);
    }
  }
  s.words = fmt::format("on {} a step takes {}, MFU {:.1f} %; predicted by {}", system.accelerator.name,
                        human_seconds(s.seconds), 100 * step.mfu(), origin_of(system));
  return s;
}

Simulated by_prices(const PlanRequest& request, const std::string& name) {
  const PredictedCpuStep predicted = predict_cpu_step(request);
  if (!predicted)
    usage_error("the step cannot be simulated", fmt::format("{}: {}", name, predicted.why_not),
                "take a machine of docs/machine_file.md, or calibrate: mpirun -np 2 chorale tune all --calibrate");
  Simulated s{.seconds = predicted.time.seconds, .kinds = {"computes", "waits"}};
  for (std::size_t rank = 0; rank < predicted.time.computes.size(); ++rank) {
    s.classes.push_back(fmt::format("rank {}", rank));
    s.ranks.push_back(1);
    s.spent.push_back(predicted.time.computes[rank]);
    s.spent.push_back(s.seconds - predicted.time.computes[rank]);
  }
  s.words = fmt::format("{}; predicted by {}", in_words(predicted.time), predicted.origin);
  return s;
}

void write_step(Recorder& recorder, const Simulated& s, const TrainingOptions& o, std::int64_t peak) {
  const auto waits = [](const std::string& kind) { return kind.starts_with("wait") || kind == "tp calls"; };
  const auto stages = [](const std::string& kind) { return kind == "wait: pp"; };
  const std::int64_t tokens = o.batch.global * o.shape.sequence;
  TrainRow row{.step = 1,
               .time = s.seconds,
               .loss = NAN,
               .lr = NAN,
               .grad_norm = NAN,
               .step_time = s.seconds,
               .tokens = tokens,
               .peak_bytes = peak};
  row.set_rates(o.shape.flops_per_token(), s.peak_flops, s.mean_of(waits) - s.mean_of(stages), s.mean_of(stages));
  recorder.append(table_of_steps(recorder), row);
}

// Labels in records have no spaces.
std::vector<std::string> as_labels(std::vector<std::string> words) {
  for (std::string& word : words) word = replace_all(word, ' ', '_');
  return words;
}

void write_spending(Recorder& recorder, const Simulated& s) {
  recorder.dimension({.name = "class", .labels = as_labels(s.classes)}, "simulated");
  recorder.dimension({.name = "kind", .labels = as_labels(s.kinds)}, "simulated");
  recorder.numbers("simulated", "ranks", {"class"}, s.ranks, "1", "ranks of the class, which behave alike");
  recorder.numbers("simulated", "seconds", {"class", "kind"}, s.spent, "s",
                   "time of a rank in a step, by what it is spent on");
  if (!s.sent.empty())
    recorder.numbers("simulated", "sent", {"class"}, s.sent, "byte", "bytes that all ranks of the class send in a step");
}

void write_memory(Recorder& recorder, const std::vector<RankPlan>& stages) {
  std::vector<std::string> names;
  std::vector<std::int64_t> planned, at_peak;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    names.push_back(fmt::format("stage {}", stage));
    planned.insert(planned.end(), stages[stage].peak.begin(), stages[stage].peak.end());
    at_peak.insert(at_peak.end(), stages[stage].at_peak.begin(), stages[stage].at_peak.end());
  }
  recorder.dimension({.name = "stage", .labels = as_labels(names)}, "memory");
  recorder.dimension({.name = "category", .labels = {std::begin(category_names), std::end(category_names)}}, "memory");
  recorder.numbers("memory", "planned", {"stage", "category"}, planned, "byte", "planned peak of a stage's fullest rank");
  recorder.numbers("memory", "planned_at_peak", {"stage", "category"}, at_peak, "byte",
                   "planned bytes when this rank holds the most, all categories together");
}

void write_pipeline(Recorder& recorder, const PipelineTimeline& timeline, const Layout& layout) {
  const std::vector<PipelineRow> rows =
      each(timeline.events, [&](const PipelineEvent& event) { return row_of(rank_of_stage(layout, event.stage), event); });
  if (!rows.empty()) record_pipeline(recorder, rows);
}

}  // namespace

SimulatedRun::SimulatedRun(const Flags& flags, const LayoutFlags& layout_flags, const OptionsOf& options_of)
    : name_(layout_flags.simulated()), machine_(machine_named(name_)) {
  const auto [layout, backends, algorithms] =
      layout_flags.choice(flags.limits(with_least_sizes(layout_flags.asked()).ranks()));
  TrainingOptions options = options_of(layout);
  const std::int64_t limit = std::exchange(options.memory.limit, 0);
  LayoutLimits limits = flags.limits(options, layout.ranks());
  limits.one_host = !machine_.system || layout.ranks() <= machine_.system->host.accelerators;
  require_fits(layout, limits);
  chorale::check(options, layout);
  if (!machine_.system && (options.offload.any() || options.update != UpdateTime::after))
    usage_error("the time of offload and of updates during passes is not predicted by prices",
                "--place or --update is given", "leave them out, or take a machine of docs/machine_file.md");
  request_ = planned_on(machine_, name_, options, layout, algorithms);
  if (!options.replicas.prefetch_units) request_.options.replicas.prefetch_units = fewest_units_ahead(request_).units;
  if (machine_.system) require_predictable({.plan = request_, .system = *machine_.system});
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    stages_.push_back(plan_rank(request_, fullest_rank(options, layout, stage)));
  require_memory(limit);
}

void SimulatedRun::require_memory(std::int64_t limit) const {
  std::int64_t memory = machine_.system ? static_cast<std::int64_t>(machine_.system->accelerator.memory) : limit;
  if (limit > 0) memory = std::min(memory, limit);
  const auto fullest = std::ranges::max_element(stages_, {}, &RankPlan::peak_bytes);
  if (memory == 0 || fullest->peak_bytes <= memory) return;
  throw NoRoom(
      Exit::usage, fmt::format("the layout {} does not fit into the memory of a rank", to_string(request_.layout)),
      fmt::format("stage {} needs {}, a rank has {}", fullest - stages_.begin(), human_bytes(fullest->peak_bytes),
                  human_bytes(memory)),
      fmt::format("layouts that fit: chorale plan --machine {} --ranks {} --search", name_, request_.layout.ranks()));
}

void SimulatedRun::record(Session& session, const std::string& run_dir) const {
  const Simulated simulated = machine_.system ? on_accelerators(request_, *machine_.system) : by_prices(request_, name_);
  RunRecord run = open_run_record(run_dir, session, gather_rank_facts(*session.runtime, session.clock));
  Recorder& recorder = *run.recorder;
  recorder.number("jobsize", request_.layout.ranks());
  recorder.text("/", "simulated_on", name_);
  recorder.text("/", "layout", to_string(request_.layout));
  if (simulated.peak_flops > 0) recorder.number("peak_flops", static_cast<std::int64_t>(simulated.peak_flops));
  write_step(recorder, simulated, request_.options, std::ranges::max(stages_, {}, &RankPlan::peak_bytes).peak_bytes);
  write_spending(recorder, simulated);
  write_memory(recorder, stages_);
  if (request_.layout.stages() > 1) write_pipeline(recorder, simulated.timeline, request_.layout);
  run.log.result("simulated: {}, {} ranks: {}", to_string(request_.layout), request_.layout.ranks(), simulated.words);
  recorder.finish("ok");
  run.log.result("recorded in {}", recorder.file().string());
}

void refuse_simulated(const std::string& name, int ranks) {
  usage_error("a simulated run is planned by one process, and trains nothing",
              fmt::format("--backend simulated:{}, {} rank{} started", name, ranks, ranks > 1 ? "s" : ""),
              "start it without mpirun, and without --device, --data, --tokenizer, --load, --load-hf and --trace-steps");
}

}  // namespace chorale::train
