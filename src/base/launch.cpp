#include "src/base/launch.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "src/base/error.hpp"

namespace chorale {
namespace {

struct KnownLauncher {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* on_host;
};

// The supported launchers. If an mpirun runs inside a Slurm step, both set their variables. The ranks were started by the
// inner launcher, so Slurm comes last.
constexpr KnownLauncher known[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH's mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"Slurm's srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""},
};

std::optional<int> number(const Environment& environment, const char* name) {
  const auto text = environment(name);
  if (!text || text->empty()) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text->c_str(), &end, 10);
  if (*end != '\0' || value < 0 || value > 100'000'000) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Launch read_launch(const Environment& environment) {
  for (const KnownLauncher& k : known) {
    const auto rank = number(environment, k.rank);
    const auto size = number(environment, k.size);
    if (rank && size && *rank < *size) return {k.launcher, k.size, *rank, *size, number(environment, k.on_host).value_or(0)};
  }
  return {};
}

void require_same_world(const Launch& launch, int mpi_size, const std::string& mpi_library) {
  if (launch.size <= 1 || mpi_size > 1) return;
  const bool open_mpi = mpi_library.find("Open MPI") != std::string::npos;
  usage_error(
      fmt::format("{} processes were launched, but each sees a world of size 1", launch.size),
      fmt::format("{} says {} = {}; this program is built with {} and sees 1 rank", launch.launcher, launch.variable,
                  launch.size, mpi_library),
      fmt::format("start it with {} -np {}, or rebuild for your launcher with make MPICXX={}",
                  open_mpi ? "mpirun.openmpi" : "mpirun.mpich", launch.size, open_mpi ? "mpicxx.mpich" : "mpicxx.openmpi"));
}

}  // namespace chorale
