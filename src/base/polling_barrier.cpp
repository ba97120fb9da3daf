#include "src/base/polling_barrier.hpp"

#include <sched.h>

#include <chrono>
#include <thread>

#include "src/base/progress_hook.hpp"

namespace chorale::mpi {

std::function<void()> yields_then_naps() {
  constexpr int most_yields = 1000;
  return [yields = 0]() mutable {
    if (++yields <= most_yields)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  };
}

void complete(const std::function<int(MPI_Request*)>& start, const std::function<void()>& pause) {
  MPI_Request all = MPI_REQUEST_NULL;
  check(start(&all));
  for (int over = 0;;) {
    check(PMPI_Test(&all, &over, MPI_STATUS_IGNORE));
    if (over) return;
    run_progress_hooks();
    pause();
  }
}

void polling_barrier(MPI_Comm comm, const std::function<void()>& pause) {
  complete([&](MPI_Request* all) { return PMPI_Ibarrier(comm, all); }, pause);
}

Comm duplicate(MPI_Comm comm) {
  polling_barrier(comm);
  MPI_Comm made = MPI_COMM_NULL;
  check(PMPI_Comm_dup(comm, &made));
  return Comm(made);
}

}  // namespace chorale::mpi
