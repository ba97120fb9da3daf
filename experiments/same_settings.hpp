// Every rank goes by rank 0's settings: a rank that resolved others (a variable set on one host only, another file) would
// compute another thing, or wait for ever. It is refused when all have started.
#pragma once
#include <optional>

#include "src/base/mpi.hpp"
#include "src/base/options.hpp"

namespace chorale {

// Collective. Where ranks differ, MPI is ended in order on all of them and all throw one usage error: the setting, both
// values, the rank.
void require_same_settings(const Options& options, std::optional<mpi::Runtime>& runtime);

}  // namespace chorale
