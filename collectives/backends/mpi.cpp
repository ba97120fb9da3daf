// MPI as a backend: always there, since the program is built with one.
#include "src/base/mpi.hpp"

#include "collectives/backends/backends.hpp"

namespace chorale {

Availability probe_mpi() { return {true, mpi::library_name()}; }

}  // namespace chorale
