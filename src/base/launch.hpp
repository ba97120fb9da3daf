// What the launcher says about this process, read from its environment before MPI is touched: so a usage error is
// printed once, and a program started by another MPI's launcher (n ranks that all believe they are alone) is stopped.
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

// Throws a usage error when the launcher started several processes and MPI (of the named library) sees only one.
void require_same_world(const Launch& launch, int mpi_size, const std::string& mpi_library);

}  // namespace chorale
