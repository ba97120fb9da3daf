// A MessagePlan is a schedule in a flat form for backends that send messages. A MessagePlan consists of arrays of steps,
// messages and dependencies. A backend can run a MessagePlan without searching or allocating.
//
//   schedule     2  recv_reduce from 1,3   input[0..4) + received → output[0..4)   after 0
//   step         2  messages 5,6   addends: workspace 0, input 0, workspace 64   waits: step 0 over, earlier messages posted
//
// Messages from one rank to another are matched in the order in which they are posted. So a step also waits until the
// messages of earlier steps with the same peer and direction are posted. A recv_reduce receives into the part of the
// workspace that follows the schedule's own scratch.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/transport/transport.hpp"

namespace chorale {

struct BufferAddress {         // an address relative to a buffer
  Place place = Place::input;  // the buffer; scratch means the workspace
  std::int64_t byte = 0;       // offset from the start of the buffer
};

struct FlatMessage {
  int peer = 0;  // rank in the group
  bool incoming = false;
  int step = 0;
  BufferAddress spot;
  std::int64_t bytes = 0;
};

struct Indices {  // a range of one of the plan's arrays
  int first = 0, last = 0;
};

struct FlatStep {
  Kind kind = Kind::send;
  Indices messages, addends;  // `addends`: a range of `spots`, with the addends in order, or with a copy's source
  BufferAddress dst;
  std::int64_t count = 0;  // number of elements at dst
  int waits = 0;           // number of times that other steps must release this step before it begins
  Indices over, posted;    // in `released`: steps to release when this step has completed, or when its messages are posted
};

struct MessagePlan {
  explicit MessagePlan(const Plan& plan);

  DType dtype;
  Redop op;
  std::vector<FlatStep> steps;
  std::vector<FlatMessage> messages;
  std::vector<BufferAddress> spots;
  std::vector<int> released;  // steps that other steps release (FlatStep::over and posted)
  std::vector<int> peers;     // all peers, each listed once
  std::int64_t workspace_bytes = 0;
  int most_addends = 0;  // maximum number of addends of a step
};

}  // namespace chorale
