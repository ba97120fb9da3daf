// Explains in words why a run cannot go on, using the flight recorders of all ranks (flight_page.hpp). The functions depend
// only on their arguments, so tests can pass any flight recorders.
//
//   rank 0   call 7 of 0-3, all_reduce   waits ─┐
//   rank 1   call 7 of 0-3, all_reduce   waits ─┼──▶ rank 2   call 6 of 0-3 has completed; stopped      "rank 2 is late"
//   rank 3   call 7 of 0-3, all_reduce   waits ─┘
//
// A rank is late for a call if another member of the call's group has begun the call and this rank has not. The text blames
// the late ranks that are not waiting in a call themselves. If every late rank waits in a call, the text names all late
// ranks.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "src/base/guard/flight_page.hpp"

namespace chorale {

struct SeenRank {
  FlightPage page;
  char state = '?';  // state of the rank's process, as in /proc/PID/stat (R, S, D, T, …), or X if the process has ended
  std::string end = "";  // how the process ended: "was killed by SIGKILL"; "" while it runs
};

std::string explain_end(const SeenRank& ended, const std::vector<SeenRank>& all);
// Explains a deadlock, in which ranks wait for each other and can never continue. Returns "" if there is no deadlock. A
// deadlock is detected without a time limit, from two facts. Each rank in the deadlock waits for a rank that has not made
// the awaited call. That rank cannot make the call, because it also waits.
std::string explain_deadlock(const std::vector<SeenRank>& all);
std::string explain_hang(const std::vector<SeenRank>& all, double seconds);
std::set<int> late_ranks(const std::vector<SeenRank>& all);  // the ranks that explain_hang blames; none if it blames nobody

// Explains a wait outside of collective calls, by naming the ranks that wait and the ranks that are late. Waits outside of
// calls occur during set-up, when a rank can work for a long time without reporting progress. `waiting` lists the ranks of
// this host that wait.
std::string explain_late(const std::vector<SeenRank>& late, const std::vector<SeenRank>& waiting, double seconds);

// Explains why a rank ended before its work was done, if a signal asked it to end. The launcher itself prints that the run
// was asked to end; this text is used only in reports.
inline constexpr const char* stopped_mark = "stopped: ";  // the prefix of explain_stop's text
std::string explain_stop(const SeenRank& ended);

// Explains that ranks of this host were asked to end but have not ended yet. The text says why these ranks are still
// running, and which data is already saved. `expected` is the number of ranks started on this host, or 0 if it is unknown.
// `next` is the launcher's next action, in words. Returns "" if all ranks have ended.
std::string explain_request(const std::vector<SeenRank>& here, int expected, const std::string& next);

std::string in_words(const SeenRank& rank);  // "is stopped, as by SIGSTOP, in step 12"

// Returns a rank's newest calls, newest first, one line per call.
std::vector<std::string> newest_calls(const FlightPage& page);

}  // namespace chorale
