// Proves a pipeline schedule, for all its stages at once, in one process:
//
//   every action once                           each (micro-batch, chunk) forward, backward and, where they are apart, weights
//   nothing before what it needs                on a stage by the order of its list, between stages by the messages
//   messages arrive in the order they are wanted   between any two stages, activations and gradients each on a channel of their own
//   no deadlock                                 a stage receives just before an action and sends right after it, without waiting
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// "" when the schedule is proved; else what is wrong, naming the stage and the action.
std::string find_flaw(const PipelineSchedule& schedule);

// What a proved schedule asks of those who carry its messages. Two neighbours that exchange an activation for a gradient would both wait
// for ever if a send lasted until its receive. And of two stages each is before and behind the other when the model goes around
// more than once: activations and gradients then take the same way, and one may be wanted before another that was sent earlier.
struct PipelineTraffic {
  bool needs_buffers = false;       // it would deadlock if sends waited for their receives
  bool needs_two_channels = false;  // activations and gradients must be told apart, by tag or communicator
};
PipelineTraffic traffic_of(const PipelineSchedule& schedule);

// By stage: how many (micro-batch, chunk) at most are forward, and not yet backward: their activations are kept. Where the gradients of
// the weights are apart, their inputs are kept until then.
std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule);

// By stage: messages that it sends.
std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule);

}  // namespace chorale
