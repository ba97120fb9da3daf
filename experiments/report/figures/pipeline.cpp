// The last step of a pipeline as measured, or as simulated on another machine, above its ideal. In the ideal, each stage
// has the same order of passes, every pass takes the mean time of its kind, and messages take no time. A stage then waits
// only if that order requires it.
#include "parallel/pipeline/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/report/figures/figures.hpp"
#include "experiments/train/gantt.hpp"
#include "parallel/pipeline/drawing.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_drawn = 4;

std::int64_t whole(double value) { return std::isfinite(value) ? static_cast<std::int64_t>(value) : 0; }

Pass pass_named(const std::string& word) {
  const auto found = std::find(std::begin(pass_names), std::end(pass_names), word);
  return found == std::end(pass_names) ? Pass::forward : static_cast<Pass>(found - std::begin(pass_names));
}

// Shows the first rank of each stage; the other ranks of the stage do the same.
PipelineTimeline measured_by(const Group& group) {
  const auto ranks = group.numbers("rank"), stages = group.numbers("stage"), micro_batches = group.numbers("micro_batch"),
             chunks = group.numbers("chunk"), starts = group.numbers("t_start"), ends = group.numbers("t_end");
  const auto kinds = group.words("kind");
  PipelineTimeline timeline;
  std::map<std::int64_t, double> shown;
  const std::size_t rows =
      std::min({ranks.size(), stages.size(), micro_batches.size(), chunks.size(), starts.size(), ends.size(), kinds.size()});
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int64_t stage = whole(stages[i]);
    if (shown.emplace(stage, ranks[i]).first->second != ranks[i]) continue;
    timeline.events.push_back(
        {stage, {pass_named(kinds[i]), whole(micro_batches[i]), whole(chunks[i])}, starts[i], ends[i]});
    timeline.stages = std::max(timeline.stages, stage + 1),
    timeline.chunks = std::max(timeline.chunks, whole(chunks[i]) + 1);
  }
  const double begin = timeline.events.empty() ? 0 : timeline.begins();
  for (PipelineEvent& event : timeline.events) event.begins -= begin, event.ends -= begin;
  return timeline;
}

// Which part of the model each chunk holds. This depends on the schedule, which is named in the layout.
const Placement* placement_of(const std::string& layout) {
  for (const std::string& part : split(layout, '.'))
    if (const PipelineAlgorithm* const row = find_pipeline_schedule(part)) return row->placement;
  return &around;
}

// The schedule that the run followed: the order of each stage's events.
PipelineSchedule schedule_of(const PipelineTimeline& timeline, const Placement* placement) {
  std::vector<PipelineEvent> events = timeline.events;
  std::sort(events.begin(), events.end(),
            [](const PipelineEvent& a, const PipelineEvent& b) { return a.begins < b.begins; });
  PipelineShape shape{timeline.stages, 1, timeline.chunks, placement};
  for (const PipelineEvent& event : events)
    shape.micro_batches = std::max(shape.micro_batches, event.action.micro_batch + 1);
  const bool splits = std::any_of(events.begin(), events.end(),
                                  [](const PipelineEvent& event) { return event.action.kind == Pass::weights; });
  PipelineSchedule schedule(shape, splits);
  for (const PipelineEvent& event : events)
    schedule.actions.at(static_cast<std::size_t>(event.stage)).push_back(event.action);
  return schedule;
}

}  // namespace

std::optional<Figure> pipeline(const RecordSet& records) {
  Figure figure{.numbers = TextTable(
                    {"run", "stages", "micro-batches", "measured", "bubble", "ideal", "ideal bubble", "times as long"}),
                .wide = true};
  double longest = 0;
  for (const auto& same : records.labelled("pipeline")) {
    const PipelineTimeline measured = measured_by(same.front()->group("pipeline"));
    if (measured.stages < 2) continue;
    const PipelineSchedule schedule = schedule_of(measured, placement_of(same.front()->layout));
    if (!find_flaw(schedule).empty()) continue;  // events are missing: the run was killed while writing them
    const PipelineTimeline ideal = simulate(schedule, train::means_of(measured, schedule));
    const std::string& label = same.front()->label;
    const double ratio = measured.seconds() / ideal.seconds();
    figure.numbers.add({label, fmt::format("{}", measured.stages), fmt::format("{}", schedule.micro_batches),
                        quantity(measured.seconds(), Unit::seconds), quantity(measured.bubble(), Unit::percent),
                        quantity(ideal.seconds(), Unit::seconds), quantity(ideal.bubble(), Unit::percent),
                        fmt::format("{:.2f}", ratio)});
    if (ratio > longest) {
      longest = ratio;
      figure.finding = fmt::format(
          "Under {} the last step took {:.2f} times its ideal. Its stages were idle for {:.0f} % of the time; the schedule "
          "requires {:.0f} %.",
          label, ratio, 100 * measured.bubble(), 100 * ideal.bubble());
    }
    if (figure.charts.size() < most_drawn)
      figure.charts.push_back(
          draw_svg({{same.front()->simulated() ? "simulated" : "measured", measured, " s"}, {"ideal", ideal, " s"}},
                   label + ": the last step"));
  }
  if (figure.charts.empty()) return {};
  return figure;
}

}  // namespace chorale::report
