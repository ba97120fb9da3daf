// The interface of the CUDA plugin for the backend nccl. It uses no types of CUDA or NCCL, so the program needs neither
// library. The program decides which messages and sums make up a call (nccl.cpp). The plugin enqueues them on a CUDA stream
// (nccl.cu, nccl_work.cu).
//
//   NcclDevice                      this rank's GPU and its memory
//     └─ connect ─▶ NcclLink        one group: its NCCL communicator and its stream
//          └─ prepare ─▶ NcclWork   one call: start, enqueue until the whole call is on the stream, poll over
//
// No function here blocks. To create a communicator, or to send the first message between two ranks, NCCL needs the other
// rank, which may be waiting for this one. So NCCL runs in nonblocking mode, and callers poll.
//
// The caller computes on its own streams. A call touches its buffers only after all work that the caller enqueued before it
// has completed. For this, the call's stream waits for an event in the default stream, which follows all blocking streams.
// The host waits for the end of a call: over() is true once the call's last event has completed. So everything that the
// caller enqueues afterwards, on any stream, sees the result. This leaves the device idle for some µs after a call. In
// return, each error surfaces in the wait() of its own call.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "collectives/backends/message/groups.hpp"
#include "collectives/backends/message/plan.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct NcclId {  // ncclUniqueId: a rank needs it to join a communicator
  char bytes[128];
};

class NcclWork {
 public:
  virtual ~NcclWork() = default;
  virtual void start(void* input, void* output) = 0;  // the previous run must be over
  virtual bool enqueue() = 0;  // enqueues as much as NCCL accepts; true once the whole call is enqueued
  virtual bool over() = 0;
};

class NcclLink {
 public:
  virtual ~NcclLink() = default;
  // Whether NCCL has accepted the last NCCL call and is ready for the next. Throws if that call failed.
  virtual bool ready() = 0;
  virtual std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) = 0;
  virtual std::unique_ptr<NcclWork> prepare_native(const Plan& plan) = 0;
  virtual void abort() noexcept = 0;  // also ends kernels that wait for peers
};

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;
  virtual Memory& memory() = 0;
  // Whether NCCL can allocate memory here that it can register with its communicators. The buffers of a call should be
  // registered on all ranks or on none.
  virtual bool registers() const = 0;
  virtual void register_nothing() = 0;  // from now on, allocate ordinary device memory; call this before any allocation
  virtual NcclId new_id() = 0;
  virtual std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) = 0;
};

// The plugin's "chorale_nccl_device"; the caller deletes it.
using NcclDeviceFunction = NcclDevice*(int index);

}  // namespace chorale
