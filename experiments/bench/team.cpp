#include "experiments/bench/team.hpp"

#include <sched.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/polling_barrier.hpp"
#include "src/base/shared_cores.hpp"
#include "src/base/topology.hpp"

namespace chorale::bench {

bool BenchTeam::any(bool mine) { return broadcast(std::ranges::count(gather({mine ? 1.0 : 0.0}), 1.0) > 0 ? 1 : 0) > 0; }

ProcessTeam::ProcessTeam(const mpi::Runtime& runtime) : runtime_(runtime) {
  const auto exchange = [&](std::int64_t mine) { return mpi::all_gather(runtime.world(), mine); };
  crowded_ = !mpi::ranks_where(runtime.world(), shares_cores(exchange)).empty();
  one_host_ = topology_of(runtime).hosts() == 1;
}

// A rank that yields can leave the barrier long after the others, and the measured time would include this delay. If ranks
// share cores, a rank must yield. It first yields once, so that the barrier's own work does not delay a rank that still
// waits in its call on the same core. Then MPI's blocking barrier follows, which ranks leave within fewer turns on their
// cores. On emulated hosts it is left out, because MPI does not know there that ranks share cores, and its ranks would not
// yield. The program of the peers yields and waits in MPI's barrier, too (experiments/peers/mpi_native.cpp).
void ProcessTeam::barrier() {
  if (!crowded_) return mpi::polling_barrier(runtime_.world(), [] {});
  sched_yield();
  mpi::polling_barrier(runtime_.world());
  if (one_host_) mpi::check(PMPI_Barrier(runtime_.world()));
}

std::vector<double> ProcessTeam::gather(const std::vector<double>& mine) {
  barrier();
  const int count = static_cast<int>(mine.size());
  std::vector<double> all(rank() == 0 ? mine.size() * static_cast<std::size_t>(size()) : 0);
  mpi::complete([&](MPI_Request* done) {
    return PMPI_Igather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, runtime_.world(), done);
  });
  return all;
}

double ProcessTeam::broadcast(double value) {
  barrier();
  mpi::complete([&](MPI_Request* done) { return PMPI_Ibcast(&value, 1, MPI_DOUBLE, 0, runtime_.world(), done); });
  return value;
}

Crew::Crew(int size, Clock& clock)
    : waiting{.clock = clock, .spins = size > static_cast<int>(allowed_cpus().size()) ? 0 : 2000},
      places(static_cast<std::size_t>(size)) {}

void ThreadTeam::barrier() {
  const std::int64_t all = (crew_.arrivals++ / size() + 1) * size();
  wait_until([&] { return crew_.arrivals >= all || crew_.broken; }, crew_.waiting, "the other threads");
  require(!crew_.broken, "rank {} stops: another thread has failed", rank_);
}

std::vector<double> ThreadTeam::gather(const std::vector<double>& mine) {
  crew_.places[static_cast<std::size_t>(rank_)] = mine;
  barrier();
  std::vector<double> all;
  if (rank_ == 0)
    for (const auto& theirs : crew_.places) all.insert(all.end(), theirs.begin(), theirs.end());
  barrier();
  return all;
}

double ThreadTeam::broadcast(double value) {
  if (rank_ == 0) crew_.places[0] = {value};
  barrier();
  const double word = crew_.places[0][0];
  barrier();
  return word;
}

}  // namespace chorale::bench
