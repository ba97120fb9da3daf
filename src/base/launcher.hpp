// Starts ranks from a program that is not itself a rank, as `mpirun -n 2 chorale …` does by hand.
//
//   MPIRUN is not set           the launcher of the MPI this program was built with
//   MPIRUN=/opt/mpi/bin/mpirun  this launcher
//   MPIRUN="srun --mpi=pmix"    a launcher with options, used unchanged
//
// Open MPI also gets the options to oversubscribe cores and, for root, to run as root.
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

  // Runs a command to its end. Returns its exit code, or 128 plus the signal that ended it. Its output goes into the two
  // files. `meanwhile` is called every 20 ms with the process id and may send it a signal.
  int run(const std::vector<std::string>& command, const std::filesystem::path& output, const std::filesystem::path& errors,
          Clock& clock, const std::function<void(int pid)>& meanwhile) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace chorale
