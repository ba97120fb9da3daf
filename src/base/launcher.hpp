// Starts ranks from a program that is not itself a rank, as a user does with `mpirun -n 2 chorale …`.
//
//   MPIRUN is not set           the launcher of the MPI this program was built with
//   MPIRUN=/opt/mpi/bin/mpirun  this launcher
//   MPIRUN="srun --mpi=pmix"    a launcher with options, used unchanged
//
// Open MPI's launcher, if given without options, also gets the options to oversubscribe cores, not to bind ranks to cores
// and, for root, to run as root.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/launch.hpp"

namespace chorale {

class Launcher {
 public:
  explicit Launcher(const Environment& environment = process_environment());

  std::vector<std::string> command(std::int64_t ranks, const std::vector<std::string>& program) const;

  // Runs a command to its end. Returns its exit code, or 128 plus the signal that ended it. The command's stdout goes to the
  // file `output`, its stderr to `errors`. `meanwhile` is called every 20 ms with the process id and may signal the process.
  int run(const std::vector<std::string>& command, const std::filesystem::path& output, const std::filesystem::path& errors,
          Clock& clock, const std::function<void(int pid)>& meanwhile) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace chorale
