#include "src/base/polling_barrier.hpp"

#include "src/base/progress_hook.hpp"

namespace chorale::mpi {

void polling_barrier(MPI_Comm comm, const std::function<void()>& pause) {
  MPI_Request all = MPI_REQUEST_NULL;
  check(PMPI_Ibarrier(comm, &all));
  for (int over = 0;;) {
    check(PMPI_Test(&all, &over, MPI_STATUS_IGNORE));
    if (over) return;
    run_progress_hooks();
    pause();
  }
}

Comm duplicate(MPI_Comm comm) {
  polling_barrier(comm);
  MPI_Comm made = MPI_COMM_NULL;
  check(PMPI_Comm_dup(comm, &made));
  return Comm(made);
}

}  // namespace chorale::mpi
