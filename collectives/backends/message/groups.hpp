// Divides a schedule's messages into groups, for a library such as NCCL. The sends and receives of a group are enqueued
// together on a CUDA stream. All of these messages complete before the next work on the stream begins. Sums and copies are
// enqueued between the groups.
//
//   ring reduce-scatter, rank 0 of 3     group 1   send to 1, receive from 2          then a sum
//                                        group 2   send to 1, receive from 2          then a sum
//
// In a group, a rank waits for more messages than the schedule requires, so a wrong division into groups can deadlock. For
// example, a receive must not be in a group if the matching send depends, via other ranks, on this rank's next group. So
// groups are numbered, and a message has the same group number on sender and receiver. The predecessors of a message are all
// messages that its send step or its receive step waits for. A message has a greater group number than all its predecessors.
// All ranks run their groups in ascending order, so no group waits for a later group. The group numbers depend on the
// schedules of all ranks.
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct MessageGroup {
  std::vector<int> messages;  // indices in MessagePlan::messages, in ascending order
  std::vector<int> steps;     // steps with a sum or copy that follows the messages, in order
};

// Returns the groups of one rank, except groups in which this rank has no messages, sums or copies.
std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank);

}  // namespace chorale
