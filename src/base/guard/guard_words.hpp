// The messages between guards, and the contents of a dump. Messages and dumps are JSON with "version" and any of these
// members:
//
//   {"host": "n1", "look": {…}}                 twice a second: state of this host's ranks; "judges" if from rank 0's guard
//   {"host": "n1", "asks": true}                asks for the flight recorders of all ranks
//   {"host": "n1", "ranks": [{"rank": 2, "calls": [{…}, …], …}, …]}       the reply
//   {"host": "n1", "lost": "error: rank 2 …", "code": 4, "verdict": {"kind": "died", "rank": 2, …}, "ranks": […]}
//                                               the run cannot go on; also the file of a dump
//   {"host": "n1", "kept": "1 0 4 16 17\n…"}    twice a second, from a keeper to the supervisor of a launch
//   {"host": "login", "ends": "soon"}           from a supervisor: ask the ranks to end. "ends": "now" kills them
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/guard/explanation.hpp"
#include "src/base/guard/look.hpp"
#include "src/base/guard/verdict.hpp"

namespace chorale {

inline constexpr int guard_words_version = 1;  // a message without "version" has version 1

struct GuardWords {
  std::string host;
  std::optional<Look> look = {};
  bool asks = false;
  bool judges = false;                               // true if the sender is the guard of rank 0, which sees all ranks and
                                                     // decides whether the run hangs
  std::string lost = "";                             // why the run cannot go on
  int exit_code = static_cast<int>(Exit::watchdog);  // exit code of all ranks if the run cannot go on
  std::optional<Verdict> verdict = {};               // the same for programs; only together with `lost` or `ends`
  std::string ends = "";                             // "soon" or "now", from the supervisor of this run
  std::vector<int> holds = {};                       // the ranks of this host, for a supervisor
  std::optional<std::string> kept = {};              // from a keeper: the snapshots that it holds (keeper.hpp)
  std::vector<SeenRank> ranks = {};
};

std::string to_text(const GuardWords& words, int indent = -1);  // −1: on a single line
GuardWords guard_words_in(const std::string& text);             // throws an Error that describes the problem

}  // namespace chorale
