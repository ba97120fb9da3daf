// The interface of the CUDA plugin for the backend nccl. The interface uses no CUDA or NCCL types, so the program needs
// neither library. The program decides which messages and sums make up a call (nccl.cpp). The plugin enqueues these messages
// and sums on a CUDA stream (nccl.cu, nccl_work.cu).
//
//   NcclDevice                      this rank's GPU and its memory
//     └─ connect ─▶ NcclLink        one group: its NCCL communicator and its stream
//          └─ prepare ─▶ NcclWork   one call: start, enqueue until the complete call is on the stream, poll over
//
// No function of this interface blocks. When NCCL creates a communicator or sends the first message between two ranks, the
// other rank must act too. At that time, the other rank could be waiting for this rank. So NCCL runs in nonblocking mode,
// and callers poll.
//
// The caller computes on its own streams. A call accesses its buffers only after the completion of all device work that the
// caller enqueued before the call. For this purpose, the call's stream waits for an event in the legacy default stream. The
// legacy default stream waits for all blocking streams. The host waits for the end of a call: over() is true once the call's
// last event has completed. So all work that the caller enqueues afterwards, on any stream, sees the result. The
// disadvantage is that the device is idle for some µs after a call. The advantage is that the wait() of a call throws the
// errors of that call.
#pragma once
#include <memory>

#include "collectives/backends/message/groups.hpp"
#include "collectives/backends/message/plan.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

struct NcclId {  // an ncclUniqueId, which a rank needs to join a communicator
  char bytes[128];
};

class NcclWork {
 public:
  virtual ~NcclWork() = default;
  virtual void start(void* input, void* output) = 0;  // the previous run must have completed
  virtual bool enqueue() = 0;  // enqueues as much as NCCL accepts; returns true once the complete call is enqueued
  virtual bool over() = 0;
};

class NcclLink {
 public:
  virtual ~NcclLink() = default;
  // Whether NCCL has accepted the last NCCL call and is ready for the next call. Throws if the last call failed.
  virtual bool ready() = 0;
  virtual std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) = 0;
  virtual std::unique_ptr<NcclWork> prepare_native(const Plan& plan) = 0;
  virtual void abort() noexcept = 0;  // aborts NCCL's communicator, including kernels that wait for peers
};

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;
  virtual Memory& memory() = 0;
  // Whether NCCL can allocate memory on this device and register it with its communicators. The buffers of a call must be
  // registered on all ranks or on none.
  virtual bool registers() const = 0;
  virtual void register_nothing() = 0;  // switches to ordinary device memory; call this before any allocation
  virtual NcclId new_id() = 0;
  virtual std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) = 0;
};

// The type of the plugin's function "chorale_nccl_device". The caller must delete the returned device.
using NcclDeviceFunction = NcclDevice*(int index);

}  // namespace chorale
