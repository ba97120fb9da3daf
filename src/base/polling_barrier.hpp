// The barrier used during set-up. Unlike MPI's own barrier, the polling barrier also sends pending data of other libraries
// (progress_hook.hpp). A late rank might need that data before it can enter the barrier. Therefore a polling_barrier
// precedes every blocking MPI collective:
//
//   rank 0   polling_barrier: progresses UCX, MPI …   │ PMPI_Allgather
//   rank 1   receives over UCX …   polling_barrier    │ PMPI_Allgather
#pragma once
#include <sched.h>

#include <functional>

#include "src/base/mpi.hpp"

namespace chorale::mpi {

// Returns after all ranks have entered. Calls `pause` between polls.
void polling_barrier(MPI_Comm comm, const std::function<void()>& pause = sched_yield);

Comm duplicate(MPI_Comm comm);  // a polling_barrier, then MPI_Comm_dup

}  // namespace chorale::mpi
