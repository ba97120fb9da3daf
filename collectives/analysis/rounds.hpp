// Matches each send with its receive, and gives each step a round number, for pricing and drawing. The numbers only describe
// a schedule. When it runs, no step waits for a round.
//
// A local step has the largest round number among the steps that it waits for, or 0. A receive also waits for the matching
// send. A send has the largest number among the steps that it waits for, plus one. Schedule::round() raises numbers further:
// a send that a rank adds after the call has a larger number than all sends that it added before. So a root that calls
// round() between its sends needs several rounds, although these sends do not wait for one another:
//
//   binomial broadcast, p = 4     round 1: 0→2     round 2: 0→1, 2→3
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct Message {
  int from = 0, to = 0;
  int send = 0, recv = 0;  // the indices of the send step on rank `from` and of the receiving step on rank `to`
};

// Messages from one rank to another are matched in the order of their steps. Throws if a send has no receive, or a receive
// no send.
std::vector<Message> match_messages(const std::vector<Schedule>& ranks);

struct Rounds {
  int count = 0;                     // rounds are 1 … count; round 0 holds local steps that need no message
  std::vector<std::vector<int>> of;  // by rank and step: the round's number
  std::vector<Message> messages;
};

Rounds find_rounds(const std::vector<Schedule>& ranks);

}  // namespace chorale
