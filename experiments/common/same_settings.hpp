// Checks that all ranks have the same settings. Settings differ, for example, if an environment variable is set on only one
// host. With different settings, ranks would compute different results, or wait for each other forever.
#pragma once
#include <optional>

#include "src/base/mpi.hpp"
#include "src/base/options.hpp"

namespace chorale {

// Collective. If settings differ, all ranks finalize MPI and throw the same usage error. The error names the first setting
// that differs, both values, and the rank that differs from rank 0.
void require_same_settings(const Options& options, std::optional<mpi::Runtime>& runtime);

}  // namespace chorale
