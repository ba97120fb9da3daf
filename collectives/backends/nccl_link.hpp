// The plugin's interface for the backend nccl, in terms that need neither CUDA nor NCCL. The program decides which messages
// and sums make up a call (nccl.cpp). The plugin enqueues them on a stream (nccl.cu, nccl_work.cu).
//
//   NcclDevice                      one GPU of this rank, its memory
//     └─ connect ─▶ NcclLink        one group: its NCCL communicator and its stream
//          └─ prepare ─▶ NcclWork   one call: start … enqueue until all of it is on the stream … over
//
// No function here blocks. Creating a communicator, or the first message between two ranks, needs the other rank, which may
// itself be waiting for this one. So NCCL runs in nonblocking mode, and callers poll.
//
// The caller computes on streams of its own. Work that it enqueued before a call completes before the call touches the
// buffers: the call's stream waits for an event in the default stream, which follows all blocking streams. The end of a call
// is awaited by the host: over() is true once the call's last event has completed. So everything the caller enqueues
// afterwards, on any stream, sees the result. That costs a gap of some µs on the device. In return, each error surfaces in
// the wait() of its own call.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "collectives/backends/message/groups.hpp"
#include "collectives/backends/message/plan.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct NcclId {  // created by NCCL; a rank needs it to join the communicator
  char bytes[128];
};

class NcclWork {
 public:
  virtual ~NcclWork() = default;
  virtual void start(void* input, void* output) = 0;  // the previous run must be over
  virtual bool enqueue() = 0;                         // enqueues as much as NCCL accepts; true when all is on the stream
  virtual bool over() = 0;
};

class NcclLink {
 public:
  virtual ~NcclLink() = default;
  virtual bool ready() = 0;  // whether NCCL's last operation has completed; throws if it failed
  virtual std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) = 0;
  virtual std::unique_ptr<NcclWork> prepare_native(const Plan& plan) = 0;
  virtual void abort() noexcept = 0;  // also ends kernels that wait for peers
};

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;
  virtual Memory& memory() = 0;
  // Whether NCCL allocates memory here that can be registered with its communicators. The buffers of a call should be
  // registered on all ranks or on none.
  virtual bool registers() const = 0;
  virtual void register_nothing() = 0;  // before any allocation
  virtual NcclId new_id() = 0;
  virtual std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) = 0;
};

// The plugin's "chorale_nccl_device"; the caller deletes it.
using NcclDeviceFunction = NcclDevice*(int index);

}  // namespace chorale
