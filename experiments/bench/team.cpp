#include "experiments/bench/team.hpp"

#include "src/base/error.hpp"

namespace chorale::bench {

void ProcessTeam::barrier() { mpi::check(PMPI_Barrier(runtime_.world())); }

std::vector<double> ProcessTeam::gather(const std::vector<double>& mine) {
  const int count = static_cast<int>(mine.size());
  std::vector<double> all(rank() == 0 ? mine.size() * static_cast<std::size_t>(size()) : 0);
  mpi::check(PMPI_Gather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, runtime_.world()));
  return all;
}

double ProcessTeam::broadcast(double value) {
  mpi::check(PMPI_Bcast(&value, 1, MPI_DOUBLE, 0, runtime_.world()));
  return value;
}

void ThreadTeam::barrier() {
  crew_.gate.arrive_and_wait();
  require(!crew_.broken, "rank {} goes no further: another thread has failed", rank_);
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

void ThreadTeam::leave() {
  crew_.broken = true;
  crew_.gate.arrive_and_drop();
}

}  // namespace chorale::bench
