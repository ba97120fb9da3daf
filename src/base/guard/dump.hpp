// Flight recorders saved to files, for `chorale explain`. RUN/flight/HOST-RANK.json holds the guard's messages
// (guard_words.hpp) and the states of the ranks at the time when the host's guard found that the run could not go on. RANK
// is the first rank of the host.
#pragma once
#include <filesystem>

#include "src/base/guard/guard_words.hpp"

namespace chorale {

// Writes a dump to the run folder. `local` is any rank of this host; its flight recorder contains the path of the run
// folder. Does nothing if there is no run folder yet.
void write_dump(const GuardWords& words, const SeenRank& local) noexcept;

// Reads the dumps of all hosts. Each rank appears once, in rank order. Throws a usage error if there are no dumps.
GuardWords read_dumps(const std::filesystem::path& run);

}  // namespace chorale
