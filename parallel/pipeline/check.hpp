// Proves a pipeline schedule, for all its stages at once, in one process:
//
//   every action once                           each (micro-batch, chunk) forward, backward and, where they are apart, weights
//   nothing before what it needs                on a stage by the order of its list, between stages by the messages
//   messages arrive in the order they are wanted   between any two stages, activations and gradients on one channel, as they are sent
//   no deadlock                                 a stage receives just before an action and sends right after it, without waiting
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// "" when the schedule is proved; else what is wrong, naming the stage and the action.
std::string find_flaw(const PipelineSchedule& schedule);

// Whether a proved schedule would deadlock if sends waited for their receives, as two neighbours would that exchange an activation for a
// gradient.
bool needs_buffers(const PipelineSchedule& schedule);

// By stage: how many (micro-batch, chunk) at most are forward, and not yet backward: their activations are kept. Where the gradients of
// the weights are apart, their inputs are kept until then.
std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule);

// By stage: messages that it sends.
std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule);

}  // namespace chorale
