// The rank of this process and the number of ranks, from the launcher's environment variables. The variables are read before
// MPI starts, so that only one rank prints a usage error. If the launcher and this program belong to different MPI
// libraries, each process becomes rank 0 of 1, which is an error.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace chorale {

using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

struct Launch {
  std::string launcher;  // "Open MPI's mpirun"; "" if the program was started by hand
  std::string variable;  // the environment variable that contains the size
  int rank = 0;
  int size = 1;
  int on_host = 0;  // number of ranks on this host, or 0 if it is unknown
  bool one_host() const { return launcher.empty() || on_host >= size; }
};

Launch read_launch(const Environment& environment);

// Throws a usage error if the launcher started several processes but MPI sees only one. mpi_library is the name of the MPI
// library.
void require_same_world(const Launch& launch, int mpi_size, const std::string& mpi_library);

}  // namespace chorale
