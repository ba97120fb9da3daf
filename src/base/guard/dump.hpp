// Flight recorders saved to files, for `chorale explain`. RUN/flight/HOST-RANK.json holds the guard's messages
// (guard_words.hpp) and the state of the ranks, as the host's guard saw them when the run was lost. RANK is the first rank
// of the host.
#pragma once
#include <filesystem>

#include "src/base/guard/guard_words.hpp"

namespace chorale {

// Writes a dump to the run folder. `local` is a rank of this host, whose flight recorder has the path of that folder. Does
// nothing if there is no run folder yet.
void write_dump(const GuardWords& words, const SeenRank& local) noexcept;

// Reads the dumps of all hosts. Each rank appears once, in rank order. Throws a usage error if there are no dumps.
GuardWords read_dumps(const std::filesystem::path& run);

}  // namespace chorale
