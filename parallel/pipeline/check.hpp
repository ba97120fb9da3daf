// Proves in one process that a pipeline schedule is correct on all of its stages:
//
//   every action once                for each (micro-batch, chunk): forward, backward and, if split, weights
//   no action before its inputs      ensured within a stage by the order of its list, and between stages by messages
//   messages arrive in order         between two stages, activations and gradients share one channel
//   no deadlock                      a stage receives just before an action, and sends right after it without waiting
#pragma once
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// Returns "" if the schedule is correct. Otherwise returns a description of the flaw with its stage and action.
std::string find_flaw(const PipelineSchedule& schedule);

// Whether a correct schedule would deadlock if sends were synchronous. Such a deadlock occurs if a stage sends an activation
// to a neighbor while this neighbor sends a gradient back.
bool needs_buffers(const PipelineSchedule& schedule);

// For each stage, the maximum number of (micro-batch, chunk) pairs in flight at the same time. A pair is in flight from its
// forward pass to the end of its backward pass. The stage keeps the activations of every pair in flight. If the schedule
// splits backward passes, the pair stays in flight until its weight gradients have been computed.
std::vector<std::int64_t> most_in_flight(const PipelineSchedule& schedule);

// For each action of a stage that sends a result, returns by when the receiver must have read the result, regardless of the
// stages' speeds. The value is the index of a later action of the same stage. When the stage has received this action's
// input, the receiver must have read the result. If no later input implies this, the value is the number of the stage's
// actions.
//
//   1f1b, 2 stages, 3 micro-batches      stage 0   F0 F1 B0 F2 B1 B2      Stage 1 sends the input of B0 after its F0, and
//                                        read by    2  4     5            before its F1. So at F2, F1 may be unread.
//
// Time and memory: O(actions of all stages · stages).
std::vector<std::size_t> read_at_latest(const PipelineSchedule& schedule, std::int64_t stage);

// For each stage, the number of messages that it sends.
std::vector<std::int64_t> messages_sent(const PipelineSchedule& schedule);

}  // namespace chorale
