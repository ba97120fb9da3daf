// Explains in words why a run cannot go on, using the flight recorders of all ranks (flight_page.hpp). These functions
// depend only on their arguments, so a test can pass any recorders.
//
//   rank 0   call 7 of 0-3, all_reduce   waits ─┐
//   rank 1   call 7 of 0-3, all_reduce   waits ─┼──▶ rank 2   call 6 of 0-3 is over; stopped      "rank 2 is late"
//   rank 3   call 7 of 0-3, all_reduce   waits ─┘
//
// A rank is late for a call if a different member of the call's group has begun the call and this rank has not. The cause is
// the late ranks that are not waiting in a call themselves. If every late rank waits in a call, the ranks wait for each
// other.
#pragma once
#include <string>
#include <vector>

#include "src/base/guard/flight_page.hpp"

namespace chorale {

struct SeenRank {
  FlightPage page;
  char state = '?';      // state of its process, as in /proc/PID/stat: R, S, D, T, …; X: the process has ended
  std::string end = "";  // how the process ended: "was killed by SIGKILL"; "" while it runs
};

std::string explain_end(const SeenRank& ended, const std::vector<SeenRank>& all);
// Returns "" unless ranks wait for each other, so that none can ever go on. No time limit is needed. Each of these ranks
// waits for a rank that has not made the awaited call, and that rank cannot make the call because it also waits.
std::string explain_deadlock(const std::vector<SeenRank>& all);
std::string explain_hang(const std::vector<SeenRank>& all, double seconds);

// Explains a wait outside of calls, by naming the ranks that wait and the ranks that are late. Such waits occur in set-up,
// where long work reports no progress. waiting: the ranks of this host that wait.
std::string explain_late(const std::vector<SeenRank>& late, const std::vector<SeenRank>& waiting, double seconds);

// Explains why a rank ended before its work was done, if a signal asked it to end. The launcher prints the request; this
// text is for reports.
inline constexpr const char* stopped_mark = "stopped: ";  // the prefix of explain_stop's text
std::string explain_stop(const SeenRank& ended);

// Explains that ranks of this host were asked to end but have not ended yet. The text says why these ranks are still
// running, and which data is saved in any case. `expected` ranks were started on this host (0: unknown). next: the next
// action of the launcher, in words. Returns "" if all ranks have ended.
std::string explain_request(const std::vector<SeenRank>& here, int expected, const std::string& next);

std::string in_words(const SeenRank& rank);  // "is stopped, as by SIGSTOP, in step 12"

// Returns a rank's newest calls, newest first, one line per call.
std::vector<std::string> newest_calls(const FlightPage& page);

}  // namespace chorale
