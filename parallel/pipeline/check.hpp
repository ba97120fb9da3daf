// Proves a pipeline schedule, for all its stages at once, in one process:
//
//   every action once                each (micro-batch, chunk): forward, backward and, if split, weights
//   no action before its inputs      on one stage by the order of its list, between stages by the messages
//   messages arrive in order         between two stages, activations and gradients share one channel
//   no deadlock                      a stage receives just before an action, and sends right after it without waiting
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// "" if the schedule is correct; else the flaw, with its stage and action.
std::string find_flaw(const PipelineSchedule& schedule);

// Whether a correct schedule would deadlock if sends were synchronous. This happens if two neighbors exchange an activation
// for a gradient.
bool needs_buffers(const PipelineSchedule& schedule);

// By stage: the largest number of (micro-batch, chunk) in flight, whose activations are kept. They are in flight from the
// forward pass to the backward pass; with a split backward pass, to the weight gradients.
std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule);

// By stage: the number of messages that it sends.
std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule);

}  // namespace chorale
