#include "experiments/report/launch_events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "src/base/text.hpp"

namespace chorale::report {

std::vector<LaunchEvent> launch_events_of(const RecordedRun& run) { return rows_of<LaunchEvent>(run.group("events")); }

std::vector<LayoutPeriod> layout_periods_of(const std::vector<LaunchEvent>& events) {
  std::vector<LayoutPeriod> periods;
  for (const LaunchEvent& event : events)
    if (std::isfinite(event.first_step_s) && (periods.empty() || periods.back().layout != event.to_layout))
      periods.push_back({event.to_layout, event.step});
  return periods;
}

bool changed_layout(const RecordedRun& run) { return layout_periods_of(launch_events_of(run)).size() > 1; }

std::string restarts_in_words(const std::vector<LaunchEvent>& events) {
  std::map<std::string, int> kinds;
  int restarts = 0;
  for (const LaunchEvent& event : events)
    if (event.is_restart()) {
      ++restarts;
      ++kinds[replace_all(name_of(event.kind), '_', ' ')];
    }
  std::vector<std::string> words;
  for (const auto& [kind, count] : kinds) words.push_back(fmt::format("{} {}", count, kind));
  return restarts == 0 ? "none" : fmt::format("{} ({})", restarts, join(words, ", "));
}

std::int64_t lost_steps_of(const std::vector<LaunchEvent>& events) {
  std::int64_t lost = 0;
  for (const LaunchEvent& event : events)
    if (event.is_restart()) lost += event.lost_steps;
  return lost;
}

double standstill_of(const std::vector<LaunchEvent>& events) {
  double seconds = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i].is_restart()) continue;
    if (const double to_step = events[i].seconds_to_step(); std::isfinite(to_step))
      seconds += to_step;
    else if (i + 1 < events.size())  // the next start ended before its first new step
      seconds += events[i + 1].t - events[i].t;
  }
  return seconds;
}

}  // namespace chorale::report
