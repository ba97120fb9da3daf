// Tracks the memory that ncclMemAlloc of the emulated NCCL returns ("lends"), and the communicators with which this memory
// is registered. Real NCCL rarely detects the following mistakes, which corrupt memory later. The emulation ends the program
// on each of them:
//
//   register     memory that was not lent, or that extends beyond the lent block; any memory while the communicator is
//                busy, because the communicator's thread reads the same list
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
