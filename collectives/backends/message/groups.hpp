// Arranges a schedule's messages in groups, for a library such as NCCL. The sends and receives of a group are enqueued
// together on a CUDA stream, and all of them complete before the next work on the stream begins. Sums and copies are
// enqueued between the groups.
//
//   ring reduce-scatter, rank 0 of 3     group 1   send to 1, receive from 2          then a sum
//                                        group 2   send to 1, receive from 2          then a sum
//
// A group makes a rank wait for more messages than its schedule requires, so a wrong choice of groups can deadlock. For
// example, a receive must not be in a group if it depends, through other ranks, on this rank's next group. So groups are
// numbered, and a message has the same group number on sender and receiver. This number is greater than the numbers of all
// messages that the send step or the receive step waits for. All ranks run their groups in ascending order, so no group
// waits for a later one. The numbers depend on the schedules of all ranks.
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct MessageGroup {
  std::vector<int> messages;  // indices in MessagePlan::messages, in ascending order
  std::vector<int> steps;     // the steps whose sums and copies follow the messages, in order
};

// The groups of one rank, except those in which this rank does nothing.
std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank);

}  // namespace chorale
