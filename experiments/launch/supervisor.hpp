// The supervisor of a launch starts the ranks of a training run, learns from their guards how the run ended, and starts it
// again on the slots that are left, until it is complete. The supervisor is not a rank, and never calls MPI.
//
//   supervisor ── starts ──▶ mpirun ── starts ──▶ ranks ◀── watches ── guard
//        ▲                                                              │
//        └──────────────── looks, verdict; "ends": soon, now ───────────┘      (guard_words.hpp, over TCP)
//
//   choose a layout (choice) ─ start ─ read rows ─ the end and its verdict ─ slots in quarantine ─ wait (restarts) ─ again
//
// The state of a run is in its checkpoints, and a checkpoint can be loaded on any layout. With exact numerics, the bits of
// the weights are therefore those of an undisturbed run.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/common/command.hpp"
#include "experiments/launch/control.hpp"
#include "experiments/launch/keepers.hpp"
#include "experiments/launch/launch_record.hpp"
#include "experiments/launch/layouts.hpp"
#include "experiments/launch/restarts.hpp"
#include "experiments/launch/slots.hpp"
#include "experiments/launch/started_run.hpp"
#include "experiments/launch/training_run.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/log.hpp"
#include "src/base/signals.hpp"

namespace chorale::launch {

struct Request {
  std::vector<std::pair<std::string, int>> hosts;  // none: this host
  std::int64_t slots = 1, fewest = 1;              // on this host, if there are no hosts; --min-ranks
  std::int64_t most_restarts = 10;
  double quarantine_seconds = 60;
  std::int64_t snapshot_interval = 1;
  bool same_layout = false;
  std::string run_dir;
};

class Supervisor {
 public:
  Supervisor(Session& session, const Request& request, const TrainingRun& program, Signals& signals);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  int run();

 private:
  // What is known about the current start while it runs.
  struct Watch {
    StartedRun run;
    OtherGuards guards;
    std::optional<Verdict> verdict = {};
    std::string lost = {};               // a host whose guard was lost before any death or hang was known
    double lost_at = 0, moved_at = 0;    // moved_at: when the newest step was done
    double verdict_at = 0, ends_at = 0;  // ends_at: when the ranks were asked to end; 0: they were not
    std::vector<std::pair<std::string, std::vector<int>>> holds = {};  // the ranks of each guard's host
    double checked_at = 0;                                             // time of the latest look for a better layout
    int code = 0;                                                      // exit code of the launcher
    std::set<const OtherGuards::Guard*> asked = {};                    // the guards that were told to end the ranks
    int hurry = 0;                                                     // how much was done to make the launcher end
  };

  std::optional<Chosen> wait_for_layout();
  EndOfRun start(const Chosen& chosen);
  void tend(Watch& watch, int launcher);
  void take_rows(Watch& watch);
  void hear_guards(Watch& watch);
  void hear_user(Watch& watch);
  void look_for_better_layout(Watch& watch);
  void end_softly(Watch& watch);
  void pass_on_the_request(Watch& watch, int launcher);
  static void hurry_up(Watch& watch, int launcher, double now);
  void hear_last_words(Watch& watch);
  void lose_silent_hosts(Watch& watch);
  void judge_silence(Watch& watch);
  void judge_lost_host(Watch& watch);
  void quarantine(const Watch& watch);
  void note_end(const Watch& watch, const EndOfRun& end, double ended);
  void note_start(const Watch& watch);
  void hear_user_between_starts();
  std::string answer(const std::string& request);  // to a request from `chorale resize`
  std::string resize(std::int64_t ranks);
  Situation situation() const;
  std::optional<Chosen> best(std::string* why_not = nullptr);
  double now() const { return session_.clock.seconds() - began_; }
  // The newest step from which ranks on these hosts can go on: in memory or on the disk. −1: none.
  std::int64_t saved_step(const std::vector<std::string>& hosts);
  void assign(std::int64_t ranks);
  bool tend_keepers();
  std::int64_t snapshot_interval() const;
  int finish(EventKind kind, const std::string& status, int code, const std::string& why);

  Session& session_;
  const Request request_;
  const TrainingRun& program_;
  Signals& signals_;
  Log log_;
  Slots slots_;
  Layouts layouts_;
  Restarts restarts_;
  LaunchRecord record_;
  Control control_;
  const double began_;
  const std::int64_t free_memory_;  // of this host before the first start; ranks that run hold some of it later
  Keepers keepers_;
  std::int64_t starts_ = 0;
  const std::string asked_;  // the layout that the user asked for; "": none
  std::optional<Possible> running_;
  std::map<std::string, double> measured_;  // the time of a step on each layout so far
  std::int64_t most_ranks_;                 // set by resize
  std::int64_t newest_step_ = 0;            // newest step that any start has done
  std::size_t live_at_start_ = 0;
  double restart_seconds_ = 5;  // what a restart costs, from the latest one
  bool wants_end_ = false, is_resizing_ = false;
  LaunchEvent event_;    // the event whose times are not all known yet
  double ended_at_ = 0;  // when the launcher of the latest start had ended
  bool has_event_ = false;
};

}  // namespace chorale::launch
