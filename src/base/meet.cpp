#include "src/base/meet.hpp"

#include "src/base/mover.hpp"

namespace chorale::mpi {

void meet(MPI_Comm comm, const std::function<void()>& pause) {
  MPI_Request all = MPI_REQUEST_NULL;
  check(PMPI_Ibarrier(comm, &all));
  for (int over = 0;;) {
    check(PMPI_Test(&all, &over, MPI_STATUS_IGNORE));
    if (over) return;
    move_all();
    pause();
  }
}

Comm duplicate(MPI_Comm comm) {
  meet(comm);
  MPI_Comm made = MPI_COMM_NULL;
  check(PMPI_Comm_dup(comm, &made));
  return Comm(made);
}

}  // namespace chorale::mpi
