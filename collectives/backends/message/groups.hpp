// Arranges a schedule for a library that takes messages in groups, such as NCCL. The sends and receives of a group are
// enqueued on a stream together. All of them complete before the next item on the stream begins. Sums and copies are on the
// stream between the groups.
//
//   ring reduce-scatter, rank 0 of 3     group 1   send to 1, receive from 2          then a sum
//                                        group 2   send to 1, receive from 2          then a sum
//
// A group makes a rank wait for more than its schedule requires, so ranks cannot group as they like. If a group held a
// receive that depends, through other ranks, on this rank's next group, the rank would wait forever. So a message has the
// same group number at both ends: the first after everything that either end waits for. All ranks go through the numbers in
// order, so none waits for a later one. The schedules of all ranks are needed to compute them.
#pragma once
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

struct MessageGroup {
  std::vector<int> messages;  // indices in a MessagePlan: the messages of step 0, then of step 1, …
  std::vector<int> steps;     // the sums and copies that follow, in order
};

// The groups of one rank, without those in which it does nothing.
std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank);

}  // namespace chorale
