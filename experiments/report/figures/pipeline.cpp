// Shows the last step of a pipeline (measured, or simulated for a different machine), and below it the ideal step. In the
// ideal step, each stage keeps its order of passes, a pass takes the mean time of its kind, and messages take no time. In
// the ideal step, a stage waits only if the order of passes requires it. If a run was repeated, the table has the medians,
// and the picture shows the repetition with the median step time. `idle` is a share of the last step; `bubble` in the table
// of the runs is the share of all steps.
#include "parallel/pipeline/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "experiments/common/each.hpp"
#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/train/gantt.hpp"
#include "parallel/pipeline/drawing.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_drawn = 4;

// Shows only the first rank of each stage, because all ranks of a stage execute the same passes.
PipelineTimeline measured_by(const RecordGroup& group) {
  PipelineTimeline timeline;
  std::map<std::int64_t, std::int64_t> shown;  // the rank that is shown of each stage
  for (const auto& row : rows_of<train::PipelineRow>(group)) {
    if (shown.emplace(row.stage, row.rank).first->second != row.rank) continue;
    timeline.events.push_back(
        {row.stage, {static_cast<Pass>(row.kind), row.micro_batch, row.chunk}, row.t_start, row.t_end});
    timeline.stages = std::max(timeline.stages, row.stage + 1);
    timeline.chunks = std::max(timeline.chunks, row.chunk + 1);
  }
  const double begin = timeline.events.empty() ? 0 : timeline.begins();
  for (PipelineEvent& event : timeline.events) {
    event.begins -= begin;
    event.ends -= begin;
  }
  return timeline;
}

// Returns which part of the model each chunk has, according to the schedule in the layout string.
const Placement* placement_of(const std::string& layout) {
  for (const std::string& part : split(layout, '.'))
    if (const PipelineAlgorithm* const row = find_pipeline_schedule(part)) return row->placement;
  return &around;
}

// The schedule that the run executed, reconstructed from the order of each stage's events.
PipelineSchedule schedule_of(const PipelineTimeline& timeline, const Placement* placement) {
  std::vector<PipelineEvent> events = timeline.events;
  std::ranges::sort(events, {}, &PipelineEvent::begins);
  PipelineShape shape{timeline.stages, 1, timeline.chunks, placement};
  for (const PipelineEvent& event : events)
    shape.micro_batches = std::max(shape.micro_batches, event.action.micro_batch + 1);
  PipelineSchedule schedule(shape);
  schedule.splits =
      std::ranges::any_of(events, [](const PipelineEvent& event) { return event.action.kind == Pass::weights; });
  for (const PipelineEvent& event : events)
    schedule.actions.at(static_cast<std::size_t>(event.stage)).push_back(event.action);
  return schedule;
}

// The last step of one run.
struct LastStep {
  const RecordedRun* run;
  PipelineTimeline measured, ideal;
  std::int64_t micro_batches = 0;
  double ratio() const { return measured.seconds() / ideal.seconds(); }
};

// Returns nothing if events are missing, because the run was killed while it wrote them.
std::optional<LastStep> last_step_of(const RecordedRun& run) {
  PipelineTimeline measured = measured_by(run.group("pipeline"));
  if (measured.stages < 2) return {};
  const PipelineSchedule schedule = schedule_of(measured, placement_of(run.layout));
  if (!find_flaw(schedule).empty()) return {};
  PipelineTimeline ideal = simulate(schedule, train::means_of(measured, schedule));
  return LastStep{&run, std::move(measured), std::move(ideal), schedule.micro_batches};
}

// The repetitions of one pipeline.
struct Repeated {
  std::vector<LastStep> steps;  // sorted, the shortest first

  Summary seconds() const {
    return summarize(per_block(runs(), [&](const RecordedRun& run) { return std::vector{of(run).measured.seconds()}; }));
  }
  double median(double (*number)(const LastStep&)) const {
    return over_repetitions(runs(), [&](const RecordedRun& run) { return number(of(run)); }).median;
  }
  const LastStep& middle() const { return steps[(steps.size() - 1) / 2]; }
  std::string spread() const { return steps.size() == 1 ? "range of the runs" : spread_name(false, seconds().has_interval); }

 private:
  std::vector<const RecordedRun*> runs() const { return each(steps, &LastStep::run); }
  const LastStep& of(const RecordedRun& run) const { return *std::ranges::find(steps, &run, &LastStep::run); }
};

std::vector<Repeated> pipelines_of(const RecordSet& records) {
  std::vector<Repeated> all;
  for (const auto& same : records.labeled("pipeline")) {
    Repeated repeated;
    for (const RecordedRun* run : same)
      if (auto step = last_step_of(*run)) repeated.steps.push_back(std::move(*step));
    std::ranges::stable_sort(repeated.steps, {}, [](const LastStep& step) { return step.measured.seconds(); });
    if (!repeated.steps.empty()) all.push_back(std::move(repeated));
  }
  return all;
}

Drawing drawing_of(const Repeated& repeated, double seconds) {
  const LastStep& step = repeated.middle();
  const std::size_t runs = repeated.steps.size();
  const std::string title = step.run->label + ": the last step" +
                            (runs > 1 ? fmt::format(" of the median of {} runs, {}", runs, step.run->id) : "");
  const std::vector<PipelinePanel> panels{{step.run->simulated() ? "simulated" : "measured", step.measured, " s"},
                                          {"ideal", step.ideal, " s"}};
  return {title, [=](Looks&, double width) {
            return draw_svg(panels, title, {.width = width, .seconds = seconds, .headline = false});
          }};
}

}  // namespace

std::optional<Figure> pipeline(const RecordSet& records) {
  const std::vector<Repeated> all = pipelines_of(records);
  if (all.empty()) return {};
  std::set<std::string> spreads;
  for (const Repeated& repeated : all) spreads.insert(repeated.spread());
  Figure figure{.numbers = TextTable({"run", "runs", "stages", "micro-batches", "measured", spread_names(spreads), "idle",
                                      "ideal", "ideally idle", "times as long"}),
                .wide = true};
  double longest = 0;
  for (const Repeated& repeated : all) {
    const Summary seconds = repeated.seconds();
    const double idle = repeated.median([](const LastStep& step) { return step.measured.bubble(); });
    const double ideal = repeated.median([](const LastStep& step) { return step.ideal.seconds(); });
    const double ideally_idle = repeated.median([](const LastStep& step) { return step.ideal.bubble(); });
    const double ratio = repeated.median([](const LastStep& step) { return step.ratio(); });
    const LastStep& drawn = repeated.middle();
    const std::string& label = drawn.run->label;
    figure.numbers.add({label, fmt::format("{}", repeated.steps.size()), fmt::format("{}", drawn.measured.stages),
                        fmt::format("{}", drawn.micro_batches), quantity(seconds.median, Unit::seconds),
                        quantity(seconds.ci_low, Unit::seconds) + " to " + quantity(seconds.ci_high, Unit::seconds),
                        quantity(idle, Unit::percent), quantity(ideal, Unit::seconds), quantity(ideally_idle, Unit::percent),
                        fmt::format("{:.2f}", ratio)});
    if (ratio > longest) {
      longest = ratio;
      figure.finding = fmt::format(
          "Under {} the last step took {:.2f} times its ideal. Its stages were idle for {:.0f} % of the time; the schedule "
          "requires {:.0f} %.",
          label, ratio, 100 * idle, 100 * ideally_idle);
    }
  }
  const std::span pictures(all.data(), std::min(all.size(), most_drawn));
  double scale = 0;  // the longest time in the pictures
  for (const Repeated& repeated : pictures)
    scale = std::max({scale, repeated.middle().measured.seconds(), repeated.middle().ideal.seconds()});
  for (const Repeated& repeated : pictures) figure.charts.push_back(drawing_of(repeated, scale));
  if (figure.charts.size() > 1) figure.finding += " All pictures have the same time scale.";
  return figure;
}

}  // namespace chorale::report
