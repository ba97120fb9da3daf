#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel/pipeline/drawing.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr const char* shades[] = {" ", "▒", "░"};  // indexed by the kind of pass
constexpr double least_tick_columns = 9;

std::int64_t longest_label(const PipelineTimeline& timeline) {
  std::size_t longest = 1;
  for (const PipelineEvent& event : timeline.events)
    longest = std::max(longest, label_of(event.action, timeline.chunks).size());
  return static_cast<std::int64_t>(longest);
}

// Returns the duration of the shortest pass if all times are multiples of it, or else 0.
double unit_of(const PipelineTimeline& timeline) {
  const double first = timeline.begins();
  double unit = std::numeric_limits<double>::infinity();
  for (const PipelineEvent& event : timeline.events) unit = std::min(unit, event.ends - event.begins);
  const auto whole = [&](double seconds) { return std::abs(seconds / unit - std::round(seconds / unit)) < 1e-6; };
  for (const PipelineEvent& event : timeline.events)
    if (!(unit > 0) || !whole(event.begins - first) || !whole(event.ends - first)) return 0;
  return timeline.events.empty() ? 0 : unit;
}

// One cell per column of the terminal.
using Row = std::vector<std::string>;

// A forward pass begins with its number, and other passes begin with a shaded column. So a reader can see where each pass
// starts and what kind of pass it is. A shaded pass gets a number only if at least one more column remains.
void draw(Row& row, const PipelineEvent& event, std::int64_t first, std::int64_t last, const std::string& label) {
  const bool forward = event.action.kind == Pass::forward;
  const auto begin = row.begin() + first, end = row.begin() + last;
  std::fill(begin, end, shades[static_cast<std::size_t>(event.action.kind)]);
  const auto room = static_cast<std::size_t>(last - first) - (forward ? 0 : 1);
  if (!forward && label.size() >= room) return;
  const std::string shown = label.substr(label.size() - std::min(room, label.size()));
  for (std::size_t i = 0; i < shown.size(); ++i) begin[static_cast<std::ptrdiff_t>(i) + !forward] = shown[i];
}

std::string axis(double seconds, double columns_per_second) {
  std::string text;
  const double tick = round_step(least_tick_columns / columns_per_second);
  for (int i = 0; i * tick <= seconds * (1 + 1e-9); ++i) {
    text.resize(std::max(text.size(), static_cast<std::size_t>(std::lround(i * tick * columns_per_second))), ' ');
    text += fmt::format("{:g}", i * tick);
  }
  return text;
}

}  // namespace

double columns_per_second(const PipelineTimeline& timeline, std::int64_t most_columns) {
  const double seconds = timeline.seconds(), most = static_cast<double>(most_columns);
  if (const double unit = unit_of(timeline); unit > 0)
    for (const std::int64_t spare : {2, 1, 0})
      if (const auto columns = static_cast<double>(longest_label(timeline) + spare); columns * seconds / unit <= most + 1e-6)
        return columns / unit;
  return seconds > 0 ? most / seconds : 1;
}

std::string draw_text(const PipelineTimeline& timeline, double columns_per_second) {
  const double start = timeline.begins();
  const auto column = [&](double when) { return std::lround((when - start) * columns_per_second); };
  const std::int64_t columns = std::max<std::int64_t>(1, column(start + timeline.seconds()));
  std::vector<Row> rows(static_cast<std::size_t>(timeline.stages), Row(static_cast<std::size_t>(columns), " "));
  for (const PipelineEvent& event : timeline.events) {
    const std::int64_t first = std::min(column(event.begins), columns - 1);
    const std::int64_t last = std::clamp(column(event.ends), first + 1, columns);
    draw(rows.at(static_cast<std::size_t>(event.stage)), event, first, last, label_of(event.action, timeline.chunks));
  }
  const std::size_t digits = std::to_string(timeline.stages - 1).size();
  std::string text;
  for (std::size_t stage = 0; stage < rows.size(); ++stage)
    text += fmt::format("stage {:>{}} │{}│\n", stage, digits, fmt::join(rows[stage], ""));
  return text + fmt::format("time  {:>{}}  {}\n", "", digits, axis(timeline.seconds(), columns_per_second));
}

}  // namespace chorale
