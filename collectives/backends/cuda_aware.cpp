#include "collectives/backends/cuda_aware.hpp"

#include "src/base/mpi.hpp"
#if defined OPEN_MPI && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // MPICH declares its query function in mpi.h
#endif

#include <algorithm>
#include <cstdlib>

#include "collectives/backends/backends.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library) {
  const char* const said = std::getenv("CHORALE_CUDA_AWARE");
  if (!said || !*said) return says_the_library;
  const std::vector<std::string> names = split(said, ',');
  std::vector<std::string> known;
  for (const Backend& row : all_backends())
    if (row.may_be_cuda_aware) known.emplace_back(row.name);
  for (const std::string& name : names)
    if (std::ranges::count(known, name) == 0 && (name != "none" || names.size() > 1))
      usage_error("CHORALE_CUDA_AWARE: unknown backend", fmt::format("\"{}\" in \"{}\"", name, said),
                  fmt::format("set it to none, or to a comma-separated list of {}, such as {}", join(known, ", "),
                              join(known, ",")));
  return std::ranges::count(names, backend) > 0;
}

std::string device_buffers_by(bool cuda_aware) {
  return cuda_aware ? "device buffers: direct (the library is CUDA-aware)" : "device buffers: staged through pinned memory";
}

bool mpi_says_cuda_aware() {
  int started = 0;
  PMPI_Initialized(&started);
  if (!started) return false;
#if defined MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#elif defined MPIX_GPU_SUPPORT_CUDA
  int is_supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_supported) == MPI_SUCCESS && is_supported;
#else
  return false;
#endif
}

}  // namespace chorale
