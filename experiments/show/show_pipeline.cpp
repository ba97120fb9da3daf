#include "experiments/show/show_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "parallel/pipeline/check.hpp"
#include "parallel/pipeline/drawing.hpp"
#include "src/base/error.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale {
namespace {

constexpr std::int64_t most_tried_chunks = 2;

// Returns the requested shape. If the requested number of chunks is 0, the schedule gets the minimum number of chunks that
// fits.
PipelineShape shape_for(const PipelineAlgorithm& row, PipelineShape shape) {
  if (shape.chunks > 0) return shape;
  do ++shape.chunks;
  while (shape.chunks < most_tried_chunks && !fits(row, shape));
  return shape;
}

const PipelineAlgorithm& row_of(const PipelineQuestion& question) {
  const std::vector<std::string> known = names_of_rows(all_pipeline_schedules());
  const std::string& name = question.words.at(1);
  if (const PipelineAlgorithm* row = find_pipeline_schedule(name)) return *row;
  usage_error(fmt::format("no pipeline schedule \"{}\"", name), "there are " + join(known, ", "),
              did_you_mean(name, known, "name one of these"));
}

PipelineTimeline timeline_of(const PipelineSchedule& schedule) { return simulate(schedule, equal_parts(schedule)); }

std::string shape_in_words(const PipelineShape& shape) {
  const auto counted = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string text = counted(shape.stages, "stage") + ", " + counted(shape.micro_batches, "micro-batch");
  if (shape.micro_batches > 1) text.insert(text.size() - 1, "e");
  return shape.chunks > 1 ? text + ", " + counted(shape.chunks, "chunk") + " per stage" : text;
}

// Converts chunks to micro-batches: a chunk is 1 / schedule.chunks of the work of a stage.
double shares(const PipelineSchedule& schedule, std::int64_t chunks) {
  return static_cast<double>(chunks) / static_cast<double>(schedule.chunks);
}

std::string legend_of(const PipelineSchedule& schedule) {
  const std::string label = label_of({}, schedule.chunks);
  return fmt::format("{} forward   ▒{}▒ backward{}\n", label, label,
                     schedule.splits ? fmt::format(" of the input only   ░{}░ gradients of the weights", label) : "");
}

std::string price_of(const PipelineSchedule& schedule) {
  const PipelineTimeline timeline = timeline_of(schedule);
  std::string text = fmt::format("time    {:.4g}: forward 1, backward 2 per stage and micro-batch; bubble {:.1f} %\n",
                                 timeline.seconds(), 100 * timeline.bubble());
  TextTable table({"stage", "idle", "in flight", "messages"});
  const auto most = most_in_flight(schedule), sent = messages_sent(schedule);
  for (std::size_t stage = 0; stage < most.size(); ++stage)
    table.add({std::to_string(stage), fmt::format("{:.4g}", timeline.idle(static_cast<std::int64_t>(stage))),
               fmt::format("{:.4g}", shares(schedule, most[stage])), std::to_string(sent[stage])});
  text += "in flight: the most micro-batches whose activations a stage keeps; messages: how many a stage sends\n\n";
  return text + table.print("text");
}

std::string describe_row(const PipelineAlgorithm& row, const PipelineShape& shape, bool steps) {
  const PipelineSchedule schedule = row.plan(shape);
  std::string text = on_screen(fmt::format("pipeline {}: {}\n{}\n\n", row.name, row.about, shape_in_words(shape)));
  if (steps)
    text += describe(schedule);
  else {
    const PipelineTimeline timeline = timeline_of(schedule);
    text += draw_text(timeline, columns_per_second(timeline)) + "\n" + legend_of(schedule);
  }
  text += "\n" + on_screen(price_of(schedule));
  if (needs_buffers(schedule))
    text += on_screen("\nneighbors send to each other at the same time, so sends must not wait for their receives\n");
  return text;
}

std::string list_rows(const PipelineShape& asked) {
  TextTable table({"pipeline", "chunks", "time", "bubble %", "in flight", "messages", "about"});
  for (const PipelineAlgorithm& row : all_pipeline_schedules()) {
    const PipelineShape shape = shape_for(row, asked);
    std::vector<std::string> cells{row.name, std::to_string(shape.chunks), "does not fit", "", "", "", row.about};
    if (fits(row, shape)) {
      const PipelineSchedule schedule = row.plan(shape);
      const PipelineTimeline timeline = timeline_of(schedule);
      const auto most = most_in_flight(schedule), sent = messages_sent(schedule);
      cells[2] = fmt::format("{:.4g}", timeline.seconds());
      cells[3] = fmt::format("{:.1f}", 100 * timeline.bubble());
      cells[4] = fmt::format("{:.4g}", shares(schedule, *std::max_element(most.begin(), most.end())));
      cells[5] = std::to_string(*std::max_element(sent.begin(), sent.end()));
    }
    table.add(std::move(cells));
  }
  return on_screen(fmt::format("{}; time: forward 1, backward 2; in flight, messages: of the stage with the most\n\n",
                               shape_in_words({asked.stages, asked.micro_batches, 1}))) +
         table.print("text");
}

}  // namespace

void require_answer(const PipelineQuestion& question) {
  if (question.words.size() < 2) return;
  const PipelineAlgorithm& row = row_of(question);
  const PipelineShape shape = shape_for(row, question.shape);
  if (fits(row, shape)) return;
  usage_error(fmt::format("pipeline {} does not fit", row.name), row.misfit(shape),
              fmt::format("{} show pipeline --stages {} --micro-batches {} lists those that do", program(), shape.stages,
                          shape.micro_batches));
}

std::string answer_in_text(const PipelineQuestion& question, bool steps) {
  if (question.words.size() < 2) return list_rows(question.shape);
  const PipelineAlgorithm& row = row_of(question);
  return describe_row(row, shape_for(row, question.shape), steps);
}

std::string answer_in_svg(const PipelineQuestion& question) {
  const PipelineAlgorithm& row = row_of(question);
  const PipelineShape shape = shape_for(row, question.shape);
  return draw_svg({{row.name, timeline_of(row.plan(shape))}},
                  fmt::format("pipeline {}, {}", row.name, shape_in_words(shape)));
}

}  // namespace chorale
