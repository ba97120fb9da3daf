// The events of a launch (`chorale launch`): the table /events of its record. An interruption is an event that ends a start
// before all steps are done: a death, a hang, a lost host, a failure or a resize.
//
//   last step        verdict       launcher ended     next start        ranks ready      first new step
//       ├─── detect ────┼───── end ──────┼──── choose ─────┼───── start ──────┤                 │
//                                                          ├──────────── first step ────────────┤
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// Times are in seconds. A time is NaN if its part did not happen.
struct LaunchEvent {
  std::string kind, host, why, from_layout, to_layout, source;
  double t = 0, step = 0, rank = -1, lost_steps = 0;
  double detect = 0, end = 0, choose = 0, start = 0, load = 0, first_step = 0;

  bool is_interruption() const;
  bool is_restart() const { return is_interruption() && !to_layout.empty(); }
  double seconds_to_step() const;  // from the verdict, or from the first start, to the first new step; NaN: none followed
  std::string name() const;        // "died: rank 3"
  std::string change() const;      // "dp2.tp2.z1 → dp3.z1"; one layout if it stayed the same
};

std::vector<LaunchEvent> launch_events_of(const RecordedRun& run);  // empty if no launch started the run

// A layout on which a run has done steps, and the newest step that was done before the run changed to it.
struct LayoutPeriod {
  std::string layout;
  double after_step = 0;
};
std::vector<LayoutPeriod> layout_periods_of(const std::vector<LaunchEvent>& events);
bool changed_layout(const RecordedRun& run);

std::string restarts_in_words(const std::vector<LaunchEvent>& events);  // "3 (2 died, 1 resized)", or "none"
double lost_steps_of(const std::vector<LaunchEvent>& events);
double standstill_of(const std::vector<LaunchEvent>& events);  // seconds from the verdicts to the next new steps, in all

}  // namespace chorale::report
