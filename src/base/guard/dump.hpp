// Flight recorders saved to files, for `chorale explain`. RUN/flight/HOST-RANK.json holds what the guard of that host saw of
// the ranks when the run was lost, and what the guard said (guard_words.hpp). RANK is the host's first rank.
#pragma once
#include <filesystem>

#include "src/base/guard/guard_words.hpp"

namespace chorale {

// Writes into the run folder, whose path `local`, a rank of this host, knows. Does nothing if there is no run folder yet.
void write_dump(const GuardWords& words, const SeenRank& local) noexcept;

// Reads the dumps of all hosts. Each rank appears once, in order. Throws a usage error if there are none.
GuardWords read_dumps(const std::filesystem::path& run);

}  // namespace chorale
