// Why a run cannot go on, in words: read from the flight recorders of all ranks (flight_page.hpp). These
// functions depend on nothing else, so a test can pass them any recorders.
//
//   rank 0   call 7 of 0-3, all_reduce   waits ─┐
//   rank 1   call 7 of 0-3, all_reduce   waits ─┼──▶ rank 2   call 6 of 0-3 is over; stopped      "rank 2 is late"
//   rank 3   call 7 of 0-3, all_reduce   waits ─┘
//
// A rank is late for a call if another member of the call's group has begun it and this rank has not. Of the late ranks,
// those that wait in no call themselves are the reason. If all of them wait, ranks wait for each other.
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
// another that has not made the awaited call, and cannot make it because it waits as well.
std::string explain_deadlock(const std::vector<SeenRank>& all);
std::string explain_hang(const std::vector<SeenRank>& all, double seconds);

// Ranks have waited outside of calls, as during set-up, where long work counts no progress: who waits, and who is late.
// `waiting`: those of this host.
std::string explain_late(const std::vector<SeenRank>& late, const std::vector<SeenRank>& waiting, double seconds);

// A rank has ended although its work was not done, after a request to end. The launcher prints that; this is for reports.
inline constexpr const char* stopped_mark = "stopped: ";  // how it begins
std::string explain_stop(const SeenRank& ended);

// Ranks of this host were asked to end and have not ended yet: what keeps them, and what is kept whatever happens to them.
// `expected` ranks were started on this host (0: unknown). `next`: what their launcher will do. "" if none lives.
std::string explain_request(const std::vector<SeenRank>& here, int expected, const std::string& next);

std::string in_words(const SeenRank& rank);  // "is stopped, as by SIGSTOP, in step 12"

// A rank's newest calls, newest first, a line each.
std::vector<std::string> newest_calls(const FlightPage& page);

}  // namespace chorale
