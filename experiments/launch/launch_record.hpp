// The record of a launch. It looks like the record of one training run: /train has the steps of all starts, one after the
// other. /events has a row for each start, and for the end.
//
//   runs/<id>-launch-…/   run.h5  metrics.jsonl   train.toml          options of all starts, except those of the layout
//                         checkpoints/            the sets of all starts, unless --save-dir names another folder
//                         <id>-train-…/           one run folder per start
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <chorale/named.hpp>
#include "experiments/common/command.hpp"
#include "experiments/train/records.hpp"
#include "src/record/recorder.hpp"

namespace chorale::launch {

enum class EventKind : std::uint8_t { started, died, hung, host_gone, failed, resized, stopped, gave_up, complete };
constexpr auto names_of(EventKind) {
  return chorale::Names{"kind of event", "started", "died",    "hung",    "host_gone",
                        "failed",        "resized", "stopped", "gave_up", "complete"};
}

// The end of a start and the next start. Times of things that did not happen are NaN.
struct EventRow {
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

  static constexpr double absent_time = std::numeric_limits<double>::quiet_NaN();
  static auto columns() {
    return std::tuple{
        column("t", &EventRow::t, "s", "time since the launch began"),
        column("step", &EventRow::step, "1", "newest step that was done"),
        column("kind", &EventRow::kind, "", "what happened", all_names<EventKind>()),
        text_column("host", &EventRow::host, "the host that was lost, or the host of the rank"),
        column("rank", &EventRow::rank, "1", "the rank that died, hung or failed; -1: none"),
        text_column("why", &EventRow::why, "the reason in words"),
        column("lost_steps", &EventRow::lost_steps, "1", "steps that were done, but not saved, and are done again"),
        column("detect_s", &EventRow::detect_s, "s", "time without progress before the guard's verdict"),
        column("end_s", &EventRow::end_s, "s", "from the verdict until the launcher had ended"),
        column("choose_s", &EventRow::choose_s, "s", "from then until the next start: choice, waits, quarantine"),
        column("start_s", &EventRow::start_s, "s", "from the start until the ranks had opened their record"),
        column("load_s", &EventRow::load_s, "s", "time in which rank 0 loaded the saved state; part of start_s"),
        column("first_step_s", &EventRow::first_step_s, "s", "from the start until the first new step was done"),
        text_column("from_layout", &EventRow::from_layout, "the layout before"),
        text_column("to_layout", &EventRow::to_layout, "the layout after"),
        column("source", &EventRow::source, "", "where the state of the next start came from", {"none", "disk", "memory"})};
  }
};

class LaunchRecord {
 public:
  // Creates the folder below `parent`.
  LaunchRecord(const std::filesystem::path& parent, const Session& session, const std::vector<std::string>& hosts);

  const std::filesystem::path& folder() const { return folder_; }
  // Called once. `toml`: the options of the training run.
  void describe(const std::string& layout, std::int64_t ranks, std::int64_t steps, const std::string& toml);
  void step(const train::TrainRow& row);
  void evaluation(const train::EvalRow& row);
  void event(const EventRow& row);
  void finish(const std::string& status);

 private:
  std::filesystem::path folder_;
  Recorder recorder_;
  Table &train_, &eval_, &events_;
};

}  // namespace chorale::launch
