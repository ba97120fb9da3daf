// The barrier used during set-up. Unlike MPI's own barrier, the polling barrier also sends pending data of other libraries
// (progress_hook.hpp). A late rank might need that data before it can enter the barrier. Therefore a polling_barrier
// precedes every MPI collective of the set-up. The collective itself is nonblocking where MPI has such a form, so that its
// waits can sleep:
//
//   rank 0   polling_barrier: progresses UCX, MPI …   │ complete: PMPI_Iallgather
//   rank 1   receives over UCX …   polling_barrier    │ complete: PMPI_Iallgather
#pragma once
#include <functional>

#include "src/base/mpi.hpp"

namespace chorale::mpi {

// Returns a pause that yields 1000 times and sleeps afterwards. On Linux 6.18, ranks that yielded without end
// kept other ranks of their core from running for more than 60 s.
std::function<void()> yields_then_naps();

// Starts a nonblocking call, such as PMPI_Ibcast, and waits until it has completed. Calls `pause` between polls. MPI's
// blocking calls only yield while they wait.
void complete(const std::function<int(MPI_Request*)>& start, const std::function<void()>& pause = yields_then_naps());

// Returns after all ranks have entered. Calls `pause` between polls.
void polling_barrier(MPI_Comm comm, const std::function<void()>& pause = yields_then_naps());

Comm duplicate(MPI_Comm comm);  // a polling_barrier, then MPI_Comm_dup

}  // namespace chorale::mpi
