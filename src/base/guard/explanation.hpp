// Explains in words why a run cannot go on, from the flight recorders of all ranks (flight_page.hpp). These functions depend
// on nothing else, so a test can pass them any recorders.
//
//   rank 0   call 7 of 0-3, all_reduce   waits ─┐
//   rank 1   call 7 of 0-3, all_reduce   waits ─┼──▶ rank 2   call 6 of 0-3 is over; stopped      "rank 2 is late"
//   rank 3   call 7 of 0-3, all_reduce   waits ─┘
//
// A rank is late for a call if another member of the call's group has begun it and this rank has not. The late ranks that do
// not wait in a call themselves are the reason. If every late rank waits in a call, the ranks wait for each other.
#pragma once
#include <string>
#include <vector>

#include "src/base/guard/flight_page.hpp"

namespace chorale {

struct SeenRank {
  FlightPage page;
  char state = '?';      // of its process, as in /proc/PID/stat: R, S, D, T, …; X: it has ended
  std::string end = "";  // how it ended: "was killed by SIGKILL"; "" while it lives
};

std::string explain_end(const SeenRank& ended, const std::vector<SeenRank>& all);
// "" unless ranks wait for each other, so that none can ever go on. No time limit is needed: each of these ranks waits for
// another that has not made the awaited call, and that rank cannot make it because it waits as well.
std::string explain_deadlock(const std::vector<SeenRank>& all);
std::string explain_hang(const std::vector<SeenRank>& all, double seconds);

// Explains a wait outside of calls: which ranks wait, and which are late. Such waits occur in set-up, where long work
// reports no progress. `waiting`: the ranks of this host that wait.
std::string explain_late(const std::vector<SeenRank>& late, const std::vector<SeenRank>& waiting, double seconds);

// A rank was asked to end, and ended before its work was done. The launcher prints that; this text is for reports.
inline constexpr const char* stopped_mark = "stopped: ";  // the prefix of this text
std::string explain_stop(const SeenRank& ended);

// Ranks of this host were asked to end, but have not ended yet. Says what keeps them, and what is saved whatever happens to
// them. `expected` ranks were started on this host (0: unknown). `next`: what their launcher will do. Returns "" if no rank
// lives.
std::string explain_request(const std::vector<SeenRank>& here, int expected, const std::string& next);

std::string in_words(const SeenRank& rank);  // "is stopped, as by SIGSTOP, in step 12"

// A rank's newest calls, newest first, a line each.
std::vector<std::string> newest_calls(const FlightPage& page);

}  // namespace chorale
