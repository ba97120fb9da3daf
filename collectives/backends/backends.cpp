#include "collectives/backends/backends.hpp"

#include "src/base/built.hpp"

namespace chorale {

// Defined one file each; weak, so that a file left out of the build leaves a null pointer and no #ifdef.
[[gnu::weak]] Availability probe_mpi();
[[gnu::weak]] Availability probe_ucx();
[[gnu::weak]] Availability probe_shm();
[[gnu::weak]] Availability probe_threads();
[[gnu::weak]] Availability probe_nccl();

const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> table{
      {"mpi", "MPI point-to-point, and its own collectives as the algorithm native", probe_mpi, ""},
      {"ucx", "UCX tag matching through UCP", probe_ucx, "without_ucx"},
      {"shm", "mapped memory between the ranks of one host", probe_shm, ""},
      {"nccl", "NCCL on NVIDIA GPUs", probe_nccl, ""},
      {"threads", "ranks as threads of one process, for tests", probe_threads, ""},
  };
  return table;
}

Availability probe(const Backend& backend) {
  return backend.probe ? backend.probe() : Availability{false, built(backend.missing)};
}

}  // namespace chorale
