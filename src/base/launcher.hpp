// Starts ranks from a program that is no rank itself, as `mpirun -n 2 chorale …` does by hand.
//
//   MPIRUN is not set           the launcher of the MPI this program was built with
//   MPIRUN=/opt/mpi/bin/mpirun  this one
//   MPIRUN="srun --mpi=pmix"    with options of its own, it is taken as it stands
//
// Open MPI is told to let ranks share cores, and to run as root where we do.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/launch.hpp"

namespace chorale {

class Launcher {
 public:
  explicit Launcher(const Environment& environment = process_environment());

  std::vector<std::string> command(std::int64_t ranks, const std::vector<std::string>& program) const;

  // Runs such a command to its end, and gives its exit code, or 128 and the signal that ended it. Its output goes into files. `meanwhile` is
  // called every 20 ms with the process; it may send it a signal.
  int run(const std::vector<std::string>& command, const std::filesystem::path& output, const std::filesystem::path& errors,
          Clock& clock, const std::function<void(int pid)>& meanwhile) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace chorale
