// Starts ranks from a program that is not itself a rank, as a user does with `mpirun -n 2 chorale …`. The variable MPIRUN
// selects the launcher:
//
//   MPIRUN is not set           the launcher of the MPI library that this program was built with
//   MPIRUN=/opt/mpi/bin/mpirun  the launcher at this path
//   MPIRUN="srun --mpi=pmix"    a launcher with options, used unchanged
//
// If Open MPI's launcher is given without options, Chorale adds options that oversubscribe cores and do not bind ranks to
// cores. If the user is root, it also adds the option that allows root.
//
// The three families of launchers take the hosts of the ranks in different ways. Ranks fill the hosts in the given order:
//
//   Open MPI     --host n0,n0,n1 --map-by seq:OVERSUBSCRIBE -x NAME      MPICH, Intel MPI     -hosts n0:2,n1:1
//   srun         --distribution=arbitrary      reads the host of each rank from the file that SLURM_HOSTFILE names
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/launch.hpp"

namespace chorale {

// The hosts for a run's ranks, with the number of ranks on each. If there are none, the launcher chooses.
struct RankHosts {
  std::vector<std::pair<std::string, int>> hosts = {};
  std::vector<std::string> variables = {};  // environment variables that ranks on other hosts need

  std::string host_file() const;  // one line per rank, for srun
};

class Launcher {
 public:
  explicit Launcher(const Environment& environment = process_environment());

  std::vector<std::string> command(std::int64_t ranks, const std::vector<std::string>& program,
                                   const RankHosts& where = {}) const;
  bool reads_host_file() const;  // whether this is srun, which needs RankHosts::host_file

  // The command that starts one process on one host, besides the ranks.
  std::vector<std::string> command_on(const std::string& host, const std::vector<std::string>& program,
                                      const std::vector<std::string>& variables) const;

  // Runs a command until it ends. Returns the exit code of the command, or 128 plus the number of the signal that ended the
  // command. Writes the command's stdout to the file `output` and its stderr to `errors`; an empty path: where this
  // program writes. Calls `meanwhile` every 20 ms with
  // the process id; `meanwhile` can send signals to the process.
  int run(const std::vector<std::string>& command, const std::filesystem::path& output, const std::filesystem::path& errors,
          Clock& clock, const std::function<void(int pid)>& meanwhile) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace chorale
