#include "experiments/train/gantt.hpp"

#include <fmt/format.h>

#include <cstring>

#include "parallel/pipeline/drawing.hpp"

namespace chorale::train {
namespace {

// If the ratio of the measured to the simulated step time exceeds this value, the output names busy cores as the cause. The
// simulation leaves out messages, but messages seldom take as long as the passes, so they alone do not exceed this value.
constexpr double busy_ratio = 2;

}  // namespace

PipelineSeconds means_of(const PipelineTimeline& timeline, const PipelineShape& shape) {
  PipelineSeconds seconds;
  seconds.parts.assign(static_cast<std::size_t>(shape.parts()), {0, 0, 0});
  for (const PipelineEvent& event : timeline.events) {
    PartSeconds& part = seconds.parts.at(static_cast<std::size_t>(shape.part(event.stage, event.action.chunk)));
    double& sum = event.action.kind == Pass::forward    ? part.forward
                  : event.action.kind == Pass::backward ? part.backward
                                                        : part.weights;
    sum += (event.ends - event.begins) / static_cast<double>(shape.micro_batches);
  }
  return seconds;
}

PipelineRow row_of(std::int64_t rank, const PipelineEvent& event) {
  const PipelineAction& action = event.action;
  return {rank,         event.stage, action.micro_batch, action.chunk, static_cast<std::uint8_t>(action.kind),
          event.begins, event.ends};
}

void record_pipeline(Recorder& recorder, const std::vector<PipelineRow>& rows) {
  Table& table = recorder.table<PipelineRow>({.group = "pipeline", .rows = "event"});
  for (const PipelineRow& row : rows) recorder.append(table, row);
}

MeasuredPipeline measure_pipeline(const Training& training, const std::vector<RankFacts>& ranks) {
  const Mesh& mesh = training.mesh();
  const std::vector<PipelineEvent>& events = training.account().events();
  const std::string mine(reinterpret_cast<const char*>(events.data()), events.size() * sizeof(PipelineEvent));
  const std::vector<std::string> all = mesh.world().exchange(mine);
  MeasuredPipeline pipeline;
  if (ranks.empty()) return pipeline;
  const PipelineSchedule& schedule = training.schedule();
  pipeline.measured = {schedule.stages, schedule.chunks, {}};
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::size_t at = 0; at < all[rank].size(); at += sizeof(PipelineEvent)) {
      PipelineEvent event;
      std::memcpy(&event, all[rank].data() + at, sizeof event);
      event.begins += ranks[rank].clock_offset;
      event.ends += ranks[rank].clock_offset;
      const auto number = static_cast<std::int64_t>(rank);
      if (number == rank_of_stage(mesh.layout(), event.stage)) pipeline.measured.events.push_back(event);
      pipeline.rows.push_back(row_of(number, event));
    }
  pipeline.simulated = simulate(schedule, means_of(pipeline.measured, schedule));
  return pipeline;
}

void report_pipeline(RunRecord& run, const MeasuredPipeline& pipeline, bool draws) {
  record_pipeline(*run.recorder, pipeline.rows);
  if (!draws) return;
  fmt::print("{}", drawn(pipeline));
}

std::string drawn(const MeasuredPipeline& pipeline) {
  const PipelineTimeline &seen = pipeline.measured, &ideal = pipeline.simulated;
  const double scale = 100 / std::max(seen.seconds(), ideal.seconds()), ratio = seen.seconds() / ideal.seconds();
  std::string text = fmt::format("the last step's pipeline, measured ({:.1f} ms, bubble {:.1f} %):\n{}",
                                 1e3 * seen.seconds(), 100 * seen.bubble(), draw_text(seen, scale));
  text += fmt::format(
      "its schedule simulated with mean durations ({:.1f} ms, bubble {:.1f} %); the run took {:.2f} times as long:\n{}",
      1e3 * ideal.seconds(), 100 * ideal.bubble(), ratio, draw_text(ideal, scale));
  if (ratio > busy_ratio)
    text +=
        "such a slowdown is rarely due to the schedule: on a busy machine, or with more ranks than cores, ranks wait for a "
        "core\n";
  return text;
}

}  // namespace chorale::train
