#include "collectives/backends/backends.hpp"

#include <fmt/format.h>

#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

// Defined one file each; weak, so that a file left out of the build leaves a null pointer and no #ifdef.
[[gnu::weak]] Availability probe_mpi();
[[gnu::weak]] Availability probe_ucx();
[[gnu::weak]] Availability probe_shm();
[[gnu::weak]] Availability probe_threads();
[[gnu::weak]] Availability probe_nccl();
[[gnu::weak]] std::unique_ptr<Transport> open_mpi(const mpi::Runtime&);
[[gnu::weak]] std::unique_ptr<Transport> open_ucx(const mpi::Runtime&);
[[gnu::weak]] std::unique_ptr<Transport> open_shm(const mpi::Runtime&);
[[gnu::weak]] std::unique_ptr<Transport> open_nccl(const mpi::Runtime&);

const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> table{
      {"mpi", "MPI point-to-point, and its own collectives as the algorithm native", probe_mpi, "", open_mpi},
      {"ucx", "UCX tag matching through UCP", probe_ucx, "without_ucx", open_ucx},
      {"shm", "mapped memory between the ranks of one host", probe_shm, "", open_shm},
      {"nccl", "NCCL on NVIDIA GPUs", probe_nccl, "", open_nccl},
      {"threads", "ranks as threads of one process, for tests", probe_threads, "", nullptr},
  };
  return table;
}

Availability probe(const Backend& backend) {
  return backend.probe ? backend.probe() : Availability{false, built(backend.missing)};
}

const Backend& backend_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Backend& backend : all_backends()) {
    if (backend.name == name) return backend;
    names.push_back(backend.name);
  }
  usage_error(fmt::format("no backend \"{}\"", name), "there are " + join(names, ", "),
              did_you_mean(name, names, "name one of these"));
}

}  // namespace chorale
