#include "collectives/backends/backends.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
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
      {"shm", "mapped memory between the ranks of one host", probe_shm, "", open_shm, true},
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

bool joins_here(const Backend& backend) { return backend.open && probe(backend).works; }

std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works) {
  if (on_device && works(backend_named("nccl"))) return "nccl";
  for (const char* name : {"shm", "ucx"})
    if (works(backend_named(name))) return name;
  return "mpi";
}

std::string best_backend(const mpi::Runtime& runtime, bool on_device) {
  const auto hosts = mpi::all_gather(runtime.world(), static_cast<std::int64_t>(std::hash<std::string>{}(host_name())));
  const bool share_a_host = std::ranges::count(hosts, hosts[0]) == std::ssize(hosts);
  return best_backend(on_device, [&](const Backend& backend) {
    const bool joins = joins_here(backend) && (share_a_host || !backend.one_host);
    return mpi::ranks_where(runtime.world(), !joins).empty();
  });
}

}  // namespace chorale
