// Proves in one process that a pipeline schedule is correct on all its stages:
//
//   every action once                for each (micro-batch, chunk): forward, backward and, if split, weights
//   no action before its inputs      within a stage by the order of its list, between stages by the messages
//   messages arrive in order         between two stages, activations and gradients share one channel
//   no deadlock                      a stage receives just before an action, and sends right after it without waiting
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// "" if the schedule is correct; else the flaw, with its stage and action.
std::string find_flaw(const PipelineSchedule& schedule);

// Whether a correct schedule would deadlock if sends were synchronous. The deadlock occurs if a stage sends an activation
// to a neighbor while this neighbor sends a gradient back.
bool needs_buffers(const PipelineSchedule& schedule);

// By stage: the largest number of pairs (micro-batch, chunk) in flight at once. A pair is in flight, and its activations
// are kept, from its forward pass to the end of its backward pass. If the schedule splits backward passes, the pair stays
// in flight until its weight gradients are done.
std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule);

// By stage: the number of messages that the stage sends.
std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule);

}  // namespace chorale
