// The barrier of set-up. Unlike MPI's own, it also progresses other libraries' unsent data (progress_hook.hpp), which a late
// rank may need to get here. It therefore comes before every blocking MPI collective:
//
//   rank 0   polling_barrier: progresses UCX, MPI …   │ PMPI_Allgather
//   rank 1   receives over UCX …   polling_barrier    │ PMPI_Allgather
#pragma once
#include <sched.h>

#include <functional>

#include "src/base/mpi.hpp"

namespace chorale::mpi {

// Returns when all ranks are here; calls `pause` between polls.
void polling_barrier(MPI_Comm comm, const std::function<void()>& pause = sched_yield);

Comm duplicate(MPI_Comm comm);  // after a polling_barrier

}  // namespace chorale::mpi
