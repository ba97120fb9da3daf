// What the launcher's environment variables say about this process, read before MPI starts. So a usage error is printed
// only once. A program started by another MPI's launcher (n separate worlds of size 1) is stopped.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace chorale {

using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

struct Launch {
  std::string launcher;  // "" when started by hand
  std::string variable;  // the variable that gave the size
  int rank = 0;
  int size = 1;
};

Launch read_launch(const Environment& environment);

// Throws a usage error if the launcher started several processes but MPI (of the named library) sees only one.
void require_same_world(const Launch& launch, int mpi_size, const std::string& mpi_library);

}  // namespace chorale
