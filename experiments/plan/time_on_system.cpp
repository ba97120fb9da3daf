#include "experiments/plan/time_on_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "parallel/pipeline/drawing.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

// The textbook formula for the time of all passes: (micro-batches + bubble) · the time of a pass on the slowest stage.
// Returns "" for schedules that split backward passes, because their bubble depends on how long each part takes.
std::string closed_form(const PredictedStep& step, const StepRequest& request) {
  const Layout& l = request.plan.layout;
  const TrainingOptions& o = request.plan.options;
  if (l.schedule->splits) return "";
  double slowest = 0;
  for (const ClassTime& time : step.step.classes)
    slowest =
        std::max(slowest, time.kernels.total() - spent(time, Spent::update) + time.calls + std::max(0.0, time.launching));
  const std::int64_t micro_batches = micro_batches_of(o, l);
  const double m = static_cast<double>(micro_batches), pass = slowest / m;
  const double bubble = l.schedule->bubble(pipeline_of(l, micro_batches));
  return fmt::format("closed form: ({:g} + {:g}) passes of {} take {}, without calls between ranks\n", m, bubble,
                     human_seconds(pass), human_seconds((m + bubble) * pass));
}

// The mean times over all ranks, as shares of the step.
std::string shares_in_words(const PredictedStep& step) {
  std::vector<std::string> words;
  for (const auto& [name, seconds] : mean_shares(step))
    if (const double share = seconds / step.seconds; share >= 0.0005)
      words.push_back(fmt::format("{} {:.1f} %", name, 100 * share));
  return join(words, ", ");
}

}  // namespace

// In csv and json, each row also has the values of the complete step.
TextTable time_table(const PredictedStep& step, const StepRequest& request, const Wording& as) {
  const std::set<std::string> axes = waited_axes(step.step);
  std::vector<std::string> columns{"stage", "ranks"};
  for (const auto& [name, seconds] : shares_of({}, axes)) columns.push_back(as.column(name, "s"));
  columns.emplace_back(as.plain() ? "all_s" : "seconds");
  if (as.plain()) columns.insert(columns.end(), {"step_s", "mfu"});
  TextTable table(columns);
  for (std::size_t c = 0; c < step.step.classes.size(); ++c) {
    const RankClass& ranks = step.ranks.classes[c];
    std::vector<std::string> row{std::to_string(stage_of(request.plan.layout, ranks.rank)), std::to_string(ranks.ranks)};
    for (const auto& [name, seconds] : shares_of(step.step.classes[c], axes)) row.push_back(as.number(seconds));
    row.push_back(as.number(step.step.classes[c].seconds));
    if (as.plain()) row.insert(row.end(), {as.seconds(step.seconds), as.number(step.mfu())});
    table.add(row);
  }
  return table;
}

double days_of(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole) {
  const TrainingOptions& o = request.plan.options;
  return whole.tokens / static_cast<double>(o.batch.global * o.shape.sequence) * step.seconds / 86400;
}

std::string words_for_training(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole) {
  if (whole.tokens <= 0) return "";
  const auto ranks = static_cast<double>(request.plan.layout.ranks());
  const double seconds = 86400 * days_of(step, request, whole);
  const double watts = request.system.accelerator.watts;
  return fmt::format(
      "{:g} billion tokens take {:.4g} days, {:.4g} million GPU-hours{}\n", whole.tokens / 1e9, seconds / 86400,
      ranks * seconds / 3600 / 1e6,
      watts > 0 ? fmt::format(", {:.4g} GWh of the accelerators at {:g} W", ranks * seconds * watts / 3.6e12, watts) : "");
}

std::string words_for_system(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole) {
  const TrainingOptions& o = request.plan.options;
  const std::string type = request.products.empty() ? name_of(o.compute) : request.products;
  const auto ranks = static_cast<double>(request.plan.layout.ranks());
  return fmt::format(
      "on {} {}: a step takes {}; {:.4g} tokens/s for each; MFU {:.1f} % of {:.4g} TFLOP/s ({})\n"
      "of a rank's time: {}\n{}{}"
      "seconds of one rank; wait: for calls in flight, and for ranks that are not there yet\n",
      request.plan.layout.ranks(), request.system.accelerator.name, human_seconds(step.seconds),
      static_cast<double>(o.batch.global * o.shape.sequence) / step.seconds / ranks, 100 * step.mfu(),
      step.peak_flops / ranks / 1e12, type, shares_in_words(step), closed_form(step, request),
      words_for_training(step, request, whole));
}

void draw(const PredictedStep& step, const std::string& title, const std::string& file) {
  std::string text;
  if (file.ends_with(".json")) {
    nlohmann::json events = nlohmann::json::array();
    for (const PipelineEvent& event : step.step.timeline.events)
      events.push_back({{"name", name_of(event.action, step.step.timeline.chunks)},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", event.stage},
                        {"ts", event.begins * 1e6},
                        {"dur", (event.ends - event.begins) * 1e6}});
    text = nlohmann::json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump();
  } else if (file.ends_with(".txt")) {
    text = draw_text(step.step.timeline, columns_per_second(step.step.timeline));
  } else {
    text = draw_svg({{title, step.step.timeline, " s"}}, title);
  }
  if (const std::string error = replace_file(file, text); !error.empty())
    usage_error("the picture could not be written", fmt::format("{}: {}", file, error), "choose another --timeline FILE");
}

}  // namespace chorale::plan
