// The events of a launch (`chorale launch`): the table /events of its record. An interruption is an event that ends a start
// before all steps are done: a death, a hang, a lost host, a failure or a resize.
//
//   last step        verdict       launcher ended     next start        ranks ready      first new step
//       ├─── detect ────┼───── end ──────┼──── choose ─────┼───── start ──────┤                 │
//                                                          ├──────────── first step ────────────┤
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include <chorale/named.hpp>
#include "src/record/table.hpp"

namespace chorale {

enum class EventKind : std::uint8_t { started, died, hung, host_gone, failed, resized, stopped, gave_up, complete };
constexpr auto names_of(EventKind) {
  return chorale::Names{"kind of event", "started", "died",    "hung",    "host_gone",
                        "failed",        "resized", "stopped", "gave_up", "complete"};
}

// A row of /events: the end of a start, and the next start. Times of things that did not happen are NaN.
struct LaunchEvent {
  double t = 0;
  std::int64_t step = 0;
  EventKind kind = EventKind::started;
  std::string host = "";
  std::int64_t rank = -1;
  std::string why = "";
  std::int64_t lost_steps = 0;
  double detect_s = absent_time, end_s = absent_time, choose_s = absent_time, start_s = absent_time, load_s = absent_time,
         first_step_s = absent_time;
  std::string from_layout = "", to_layout = "";
  std::string source = "none";

  bool is_interruption() const;
  bool is_restart() const { return is_interruption() && !to_layout.empty(); }
  double seconds_to_step() const;  // from the verdict, or from the first start, to the first new step; NaN: none followed
  std::string name() const;        // "died: rank 3"
  std::string change() const;      // "dp2.tp2.z1 → dp3.z1"; one layout if it stayed the same

  static constexpr double absent_time = std::numeric_limits<double>::quiet_NaN();
  static auto columns() {
    return std::tuple{
        column("t", &LaunchEvent::t, "s", "time since the launch began"),
        column("step", &LaunchEvent::step, "1", "newest step that was done"),
        column("kind", &LaunchEvent::kind, "", "what happened", all_names<EventKind>()),
        text_column("host", &LaunchEvent::host, "the host that was lost, or the host of the rank"),
        column("rank", &LaunchEvent::rank, "1", "the rank that died, hung or failed; -1: none"),
        text_column("why", &LaunchEvent::why, "the reason in words"),
        column("lost_steps", &LaunchEvent::lost_steps, "1", "steps that were done, but not saved, and are done again"),
        column("detect_s", &LaunchEvent::detect_s, "s", "time without progress before the guard's verdict"),
        column("end_s", &LaunchEvent::end_s, "s", "from the verdict until the launcher had ended"),
        column("choose_s", &LaunchEvent::choose_s, "s", "from then until the next start: choice, waits, quarantine"),
        column("start_s", &LaunchEvent::start_s, "s",
               "from the start until the ranks had opened their record, or had ended"),
        column("load_s", &LaunchEvent::load_s, "s", "time in which rank 0 loaded the saved state; part of start_s"),
        column("first_step_s", &LaunchEvent::first_step_s, "s", "from the start until the first new step was done"),
        text_column("from_layout", &LaunchEvent::from_layout, "the layout before"),
        text_column("to_layout", &LaunchEvent::to_layout, "the layout after"),
        column("source", &LaunchEvent::source, "", "where the state of the next start came from",
               {"none", "disk", "memory"})};
  }
};

}  // namespace chorale
