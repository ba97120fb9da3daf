// Gives each step a round number, for pricing and drawing. Round numbers do not affect execution. When a schedule runs, no
// step waits for a round.
//
// The round number of a local step or a receive is the maximum round number of the steps that it waits for, or 0. A receive
// also waits for the matching send. The round number of a send is this maximum plus one. Schedule::round() raises round
// numbers further: sends that a rank adds after the call have larger numbers than sends that the rank added before the call.
// So a root that calls round() between its sends needs several rounds, although the sends do not wait for one another:
//
//   binomial broadcast, p = 4     round 1: 0→2     round 2: 0→1, 2→3
#pragma once
#include "collectives/schedule/step_graph.hpp"

namespace chorale {

struct Rounds {
  int count = 0;                     // rounds have the numbers 1 to `count`; steps in round 0 need no message
  std::vector<std::vector<int>> of;  // round numbers, indexed by rank and step
  std::vector<Message> messages;
};

Rounds find_rounds(const std::vector<Schedule>& ranks);

}  // namespace chorale
