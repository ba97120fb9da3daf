// A schedule for a library that takes messages in groups, as NCCL does: sends and receives are put on a stream together, and what is put
// there next begins when all of them are over. Sums and copies stand on the stream between them.
//
//   ring reduce-scatter, rank 0 of 3     group 1   send to 1, receive from 2          then a sum
//                                        group 2   send to 1, receive from 2          then a sum
//
// A group makes a rank wait for more than its schedule asks, so ranks must not group as each likes: one whose group holds a receive that
// depends, by way of others, on what this rank sends in its next group would wait for ever. Therefore a message is in the group of one
// number on both its ends: the first after all that either end waits for. Ranks go through the numbers in one order, so that none
// waits for a later one. All ranks' schedules are needed to know it.
#pragma once
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

struct MessageGroup {
  std::vector<int> messages;  // as a MessagePlan counts them: those of step 0, those of step 1, …
  std::vector<int> steps;     // sums and copies that follow, in this order
};

// Of one rank. Groups in which it does nothing are left out.
std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank);

}  // namespace chorale
