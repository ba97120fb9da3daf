#include "collectives/backends/backends.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

// Each backend's file defines its own functions. The declarations are weak symbols. If a file is left out of the build, its
// functions are null pointers, and no #ifdef is needed.
[[gnu::weak]] Backend::Probe probe_mpi, probe_ucx, probe_shm, probe_shm_ucx, probe_threads, probe_nccl;
[[gnu::weak]] Backend::Open open_mpi, open_ucx, open_shm, open_shm_ucx, open_nccl;
[[gnu::weak]] std::string ucx_version();

const std::vector<Backend>& all_backends() {
  // Typical prices for backends on which a core reads the memory of another rank. The other prices in the table assume
  // messages within one host or, for nccl, GPUs on a network.
  constexpr Price mapped{.alpha = 0.2e-6, .beta = 1 / 8e9, .gamma = 1 / 12e9};
  static const std::vector<Backend> table{
      {.name = "mpi",
       .about = "MPI point-to-point; MPI's own collectives are the algorithm native",
       .probe = probe_mpi,
       .open = open_mpi,
       .usual = {.alpha = 1e-6, .beta = 1 / 4e9, .gamma = 1 / 8e9},
       .preference = 1,
       .may_be_cuda_aware = true,
       .has_native = true},
      {.name = "ucx",
       .about = "UCX tag matching through UCP",
       .probe = probe_ucx,
       .missing = "without_ucx",
       .open = open_ucx,
       .library = ucx_version,
       .usual = {.alpha = 0.8e-6, .beta = 1 / 4e9, .gamma = 1 / 8e9},
       .preference = 2,
       .may_be_cuda_aware = true,
       .uses_ucx = true},
      {.name = "shm",
       .about = "mapped memory between the ranks of one host",
       .probe = probe_shm,
       .open = open_shm,
       .usual = mapped,
       .preference = 4,
       .one_host = true,
       .maps_memory = true},
      {.name = "shm+ucx",
       .about = "mapped memory between ranks of one host, UCX between hosts",
       .probe = probe_shm_ucx,
       .missing = "without_ucx",
       .open = open_shm_ucx,
       .library = ucx_version,
       .usual = {.alpha = 0.5e-6, .beta = 1 / 6e9, .gamma = 1 / 8e9},
       .preference = 3,
       .uses_ucx = true,
       .on_a_host = "shm"},
      {.name = "nccl",
       .about = "NCCL on NVIDIA GPUs",
       .probe = probe_nccl,
       .open = open_nccl,
       .usual = {.alpha = 10e-6, .beta = 1 / 20e9, .gamma = 1 / 500e9},
       .preference = 5,
       .devices_only = true},
      {.name = "threads",
       .about = "ranks as threads of one process, for tests",
       .probe = probe_threads,
       .usual = mapped,
       .ranks_are_threads = true,
       .one_host = true,
       .maps_memory = true},
  };
  return table;
}

Availability probe(const Backend& backend) {
  return backend.probe ? backend.probe() : Availability{false, built(backend.missing)};
}

const Backend& backend_named(const std::string& name) {
  for (const Backend& backend : all_backends())
    if (backend.name == name) return backend;
  const std::vector<std::string> names = backend_names();
  usage_error(fmt::format("no backend \"{}\"", name), "there are " + join(names, ", "),
              did_you_mean(name, names, "name one of these"));
}

std::vector<std::string> backend_names(bool (*which)(const Backend&)) {
  std::vector<std::string> names;
  for (const Backend& backend : all_backends())
    if (!which || which(backend)) names.emplace_back(backend.name);
  return names;
}

std::string backend_of_every_machine() {
  return best_backend(false, [](const Backend&) { return false; });
}

bool joins_here(const Backend& backend) { return backend.open && probe(backend).works; }

std::string best_backend(bool on_device, const std::function<bool(const Backend&)>& works) {
  std::vector<const Backend*> rows;
  for (const Backend& row : all_backends())
    if (row.preference > 0 && (on_device || !row.devices_only)) rows.push_back(&row);
  std::ranges::sort(rows, std::greater(), [](const Backend* row) { return row->preference; });
  const auto first = std::ranges::find_if(rows, [&](const Backend* row) { return row == rows.back() || works(*row); });
  return (*first)->name;  // the last row, MPI, is not probed, because the program runs on MPI
}

std::string best_backend(const mpi::Runtime& runtime, const Topology& topology, bool on_device) {
  return best_backend(on_device, [&](const Backend& backend) {
    const bool joins = joins_here(backend) && (topology.hosts() == 1 || !backend.one_host);
    return mpi::ranks_where(runtime.world(), !joins).empty();
  });
}

}  // namespace chorale
