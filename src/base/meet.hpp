// The barrier of set-up. Unlike MPI's own, it moves what other libraries still have to send (mover.hpp), which a rank that is late may need
// to get here. So it stands before every collective call of MPI that ranks wait in:
//
//   rank 0   meet: moves UCX, MPI …       │ PMPI_Allgather
//   rank 1   receives over UCX …   meet   │ PMPI_Allgather
#pragma once
#include <sched.h>

#include <functional>

#include "src/base/mpi.hpp"

namespace chorale::mpi {

// Returns when all ranks are here; pauses between two looks.
void meet(MPI_Comm comm, const std::function<void()>& pause = sched_yield);

Comm duplicate(MPI_Comm comm);  // meets first

}  // namespace chorale::mpi
