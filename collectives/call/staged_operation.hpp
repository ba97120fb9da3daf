// A StagedOperation runs a call on buffers that the transport cannot access. nccl cannot access host buffers. shm cannot
// access device buffers. Without a CUDA-aware library, ucx and mpi cannot access device buffers either. The input is copied
// to a bounce buffer, which the transport can access. The call runs on bounce buffers. Then the result is copied to the
// caller's output.
//
//   device   input ─┐ fetch                            send ┌─▶ output
//   host            └─▶ bounce buffer ── the operation ──▶ bounce buffer ┘           nccl swaps device and host
//
// Bounce buffers are allocated once per operation, in the transport's own memory. shm allocates them in mapped memory, so
// peers read bounce buffers directly. Host bounce buffers are pinned. A copy from the device waits for all device work that
// was enqueued before the call. The output is complete once progress() returns true. Copies are polled like messages, so no
// copy blocks the host (src/memory/async_copy.hpp). MPI and NCCL match native collectives by call order. So calls of a group
// start in call order (communicator_state.cpp), even if the input copy of a later call completes first.
//
// Cost: each byte of input and output is copied once between host and device, in addition to the operation's cost. The
// communicator splits a large all_reduce, reduce or broadcast into segments and has several segments in flight
// (communicator_state.cpp). So the copies of one segment overlap the messages of other segments.
#pragma once
#include <memory>

#include "collectives/transport/transport.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

constexpr std::int64_t staged_piece_bytes = 1 << 20;

// `plan` says whether the caller's buffers are on the host or on the device. `device` is the memory of the device that holds
// either the caller's buffers or the bounce buffers.
std::unique_ptr<Operation> staged_operation(Group& group, const Plan& plan, std::shared_ptr<Memory> device, Allocator host);

}  // namespace chorale
