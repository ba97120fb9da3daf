// What the emulated NCCL lends, and which communicators were told of it. Real ones say nothing of most mistakes here, and write elsewhere later;
// this ends the program:
//
//   register     memory that is not lent, or more of it; while the communicator is at work, whose thread looks at the same list
//   deregister   what is not registered
//   free         what a communicator still knows
//   destroy      a communicator that still knows something
//
// And the buffers of a message are registered on both its ends or on neither.
#pragma once
#include <nccl.h>

namespace emulation {

[[noreturn]] void misuse_of_nccl(const char* what);
bool is_at_work(ncclComm_t comm);  // nccl.cu
bool is_registered(ncclComm_t comm, const void* place);
bool knows_something(ncclComm_t comm);
void forget_all(ncclComm_t comm);  // it is aborted

}  // namespace emulation
