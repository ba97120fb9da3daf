// Which send matches which receive, and in which round. Pricing and drawing start from this.
//
// A message leaves one round after everything its send waits for. It is received in that round, or in a later one if the
// receiver must finish something first. Local steps belong to the round that makes them possible. A rank's sends below a
// later round() of its algorithm leave later than those above. So a root that serves ranks one by one takes several:
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

// Messages from one rank to another are matched in the order of their steps. Throws if one has no partner.
std::vector<Message> match_messages(const std::vector<Schedule>& ranks);

struct Rounds {
  int count = 0;                     // rounds 1 … count; round 0 holds the steps that need no message
  std::vector<std::vector<int>> of;  // by rank and step
  std::vector<Message> messages;
};

Rounds find_rounds(const std::vector<Schedule>& ranks);

}  // namespace chorale
