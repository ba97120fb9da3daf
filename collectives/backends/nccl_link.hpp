// What the plugin does for the backend nccl, in words that need neither CUDA nor NCCL: the program decides which messages and sums make up
// a call (nccl.cpp), this puts them on a stream (nccl.cu, nccl_work.cu).
//
//   NcclDevice                      one GPU of this rank, its memory
//     └─ connect ─▶ NcclLink        one group: NCCL's communicator and a stream of its own
//          └─ prepare ─▶ NcclWork   one call: start … enqueue until all of it is on the stream … over
//
// Nothing here waits. Making a communicator, or the first message between two ranks, needs the other rank, who may be busy elsewhere with
// something that needs this one: so NCCL is asked not to block, and whoever waits polls.
//
// The caller computes on streams of his own. What he put there before a call is over before the call touches the buffers: its stream waits
// for an event in the default stream, which stands behind all blocking streams. After a call it is the host that has waited: over() is true
// once the last event of the call has passed, so whatever the caller puts on any stream from then on finds the result. That costs a gap of
// some µs on the device, and buys that each error is met in the wait() of its own call.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "collectives/backends/message/groups.hpp"
#include "collectives/backends/message/plan.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct NcclId {  // as NCCL makes it: who has it can join the communicator
  char bytes[128];
};

class NcclWork {
 public:
  virtual ~NcclWork() = default;
  virtual void start(void* input, void* output) = 0;  // the one before must be over
  virtual bool enqueue() = 0;                         // as much as NCCL takes; true when all is on the stream
  virtual bool over() = 0;
};

class NcclLink {
 public:
  virtual ~NcclLink() = default;
  virtual bool ready() = 0;  // whether NCCL has done what it was asked last; throws when that failed
  virtual std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) = 0;
  virtual std::unique_ptr<NcclWork> prepare_native(const Plan& plan) = 0;
  virtual void abort() noexcept = 0;  // kernels that wait for peers end
};

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;
  virtual Memory& memory() = 0;
  // Whether NCCL lends memory here that its communicators can be told of: buffers of a call want to be such on all ranks or on none.
  virtual bool registers() const = 0;
  virtual void register_nothing() = 0;  // before anything is taken
  virtual NcclId new_id() = 0;
  virtual std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) = 0;
};

// The plugin's "chorale_nccl_device"; the caller deletes it.
using NcclDeviceFunction = NcclDevice*(int index);

}  // namespace chorale
