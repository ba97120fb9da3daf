// A schedule laid flat, for backends that carry messages: arrays of steps, of the messages they are made of, and of who waits for
// whom, so that running it needs no look-ups and no memory.
//
//   schedule     2  recv_reduce from 1,3   input[0..4) + theirs → output[0..4)   after 0
//   step         2  messages 5,6   addends: workspace 0, input 0, workspace 64   waits: step 0 over, message channels free
//
// Messages between two ranks are matched in the order in which they stand, so a step also waits until those before it on its
// channels (peer and direction) are posted. What a recv_reduce gets lies in the workspace, behind the schedule's own scratch.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/backends/transport.hpp"

namespace chorale {

struct Spot {
  Place place = Place::input;  // scratch: of the workspace
  std::int64_t byte = 0;
};

struct FlatMessage {
  int peer = 0;  // in the group
  bool incoming = false;
  int step = 0;
  Spot spot;
  std::int64_t bytes = 0;
};

struct Indices {  // a range of one of the plan's arrays
  int first = 0, last = 0;
};

struct FlatStep {
  Kind kind = Kind::send;
  Indices messages, addends;  // addends: of `spots`, in the order of the sum; a copy's source
  Spot dst;
  std::int64_t count = 0;  // of dst
  int waits = 0;           // how many releases it takes until it may begin
  Indices over, posted;    // of `released`: steps that wait until this one is over, or only until its messages are posted
};

struct MessagePlan {
  explicit MessagePlan(const Plan& plan);

  DType dtype;
  Redop op;
  std::vector<FlatStep> steps;
  std::vector<FlatMessage> messages;
  std::vector<Spot> spots;
  std::vector<int> released;
  std::vector<int> peers;  // all there are, each once
  std::int64_t workspace_bytes = 0;
  int most_addends = 0;  // of a step
};

}  // namespace chorale
