// Checks that all ranks resolved the same settings. They differ if, say, a variable is set on one host only. Such a rank
// would compute something else, or wait forever.
#pragma once
#include <optional>

#include "src/base/mpi.hpp"
#include "src/base/options.hpp"

namespace chorale {

// Collective. If ranks differ, all ranks finalize MPI and throw the same usage error, with the setting, both values and the
// rank.
void require_same_settings(const Options& options, std::optional<mpi::Runtime>& runtime);

}  // namespace chorale
