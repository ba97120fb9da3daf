// Which send meets which receive, and in which round: what pricing and drawing both start from.
//
// A message leaves one round after everything its send waits for, and is taken in that round or, when the receiver has to finish
// something first, in a later one; local steps belong to the round that makes them possible. What stands below a later round() of
// an algorithm leaves later than what the same rank sends above it, so that a root that serves one rank after another is seen to:
//
//   binomial broadcast, p = 4     round 1: 0→2     round 2: 0→1, 2→3
#pragma once
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

struct Message {
  int from = 0, to = 0;
  int send = 0, recv = 0;  // the steps, of `from` and of `to`
};

// Messages from one rank to another are matched in the order in which their steps stand; one without a partner is misuse.
std::vector<Message> match_messages(const std::vector<Schedule>& ranks);

struct Rounds {
  int count = 0;                     // rounds 1 … count; in round 0 stands what needs no message
  std::vector<std::vector<int>> of;  // by rank and step
  std::vector<Message> messages;
};

Rounds find_rounds(const std::vector<Schedule>& ranks);

}  // namespace chorale
