#include "collectives/backends/mapped/stage_layout.hpp"

#include <algorithm>

#include "src/base/index.hpp"
#include "src/base/round_up.hpp"

namespace chorale::mapped {
namespace {

bool is_staged(const Step& step, const StagingRule& staging) {
  return step.kind == Kind::send && step.src[0].count <= staging.most_elements;
}

// Returns the smallest range that contains all staged messages from this place. Returns an empty range if the schedule
// writes to the range, or if the first of these sends must wait: then another send could come first.
Range kept(const Schedule& schedule, Place place, const StagingRule& staging) {
  Range hull{place, 0, 0};
  for (const Step& step : schedule.steps) {
    if (!is_staged(step, staging) || step.src[0].place != place) continue;
    const Range& sent = step.src[0];
    if (hull.count == 0 && !step.after.empty()) return {place, 0, 0};
    const std::int64_t first = hull.count == 0 ? sent.first : std::min(hull.first, sent.first);
    const std::int64_t end = std::max(hull.first + hull.count, sent.first + sent.count);
    hull = {place, first, end - first};
  }
  const bool is_written = std::ranges::any_of(schedule.steps, [&](const Step& step) {
    return step.kind != Kind::send && overlap(schedule.problem(), step.dst, hull);
  });
  return is_written ? Range{place, 0, 0} : hull;
}

}  // namespace

StageLayout::StageLayout(const Schedule& schedule, const StagingRule& staging) {
  const auto take = [&](std::int64_t count) {
    const std::int64_t at = lines * staging.line_elements;
    lines += round_up(count, staging.line_elements) / staging.line_elements;
    return at;
  };
  Range hulls[3];
  std::int64_t hull_at[3] = {-1, -1, -1};
  for (const Place place : {Place::input, Place::output, Place::scratch})
    hulls[index(static_cast<int>(place))] = kept(schedule, place, staging);
  for (const Step& step : schedule.steps) {
    Message& message = messages.emplace_back();
    if (!is_staged(step, staging)) continue;
    const Range& sent = step.src[0];
    const std::size_t place = index(static_cast<int>(sent.place));
    const bool is_kept = hulls[place].count > 0;
    if (!is_kept || hull_at[place] < 0) {
      message.fill = is_kept ? hulls[place] : sent;
      message.fill_at = take(message.fill.count);
      if (is_kept) hull_at[place] = message.fill_at;
    }
    message.at = is_kept ? hull_at[place] + sent.first - hulls[place].first : message.fill_at;
  }
}

}  // namespace chorale::mapped
