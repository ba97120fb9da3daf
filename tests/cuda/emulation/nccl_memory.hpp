// The memory that ncclMemAlloc of the emulated NCCL returns ("lends"), and the communicators with which it is registered.
// Real NCCL rarely notices the mistakes below, which corrupt memory later. Here they end the program:
//
//   register     memory that was not lent, or that extends beyond the lent block; or any memory while the communicator is
//   busy, because its thread reads the same list
//   deregister   memory that is not registered
//   free         memory that is still registered with a communicator
//   destroy      a communicator that still has registered memory
//
// The send buffer and the receive buffer of a message must both be registered, or neither.
#pragma once
#include <nccl.h>

namespace emulation {

[[noreturn]] void misuse_of_nccl(const char* what);
bool is_at_work(ncclComm_t comm);  // nccl.cu
bool is_registered(ncclComm_t comm, const void* place);
bool knows_something(ncclComm_t comm);
void forget_all(ncclComm_t comm);  // called when the communicator is aborted

}  // namespace emulation
