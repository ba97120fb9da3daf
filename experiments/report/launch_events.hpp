// The events of a launch (common/launch_event.hpp), as a report reads them from its record.
#pragma once
#include <string>
#include <vector>

#include "experiments/common/launch_event.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::vector<LaunchEvent> launch_events_of(const RecordedRun& run);  // empty if no launch started the run

// A layout on which a run has done steps, and the newest step that was done before the run changed to it.
struct LayoutPeriod {
  std::string layout;
  std::int64_t after_step = 0;
};
std::vector<LayoutPeriod> layout_periods_of(const std::vector<LaunchEvent>& events);
bool changed_layout(const RecordedRun& run);

std::string restarts_in_words(const std::vector<LaunchEvent>& events);  // "3 (2 died, 1 resized)", or "none"
std::int64_t lost_steps_of(const std::vector<LaunchEvent>& events);
double standstill_of(const std::vector<LaunchEvent>& events);  // seconds from the verdicts to the next new steps, in all

}  // namespace chorale::report
