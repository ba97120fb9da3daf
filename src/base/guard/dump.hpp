// Flight recorders in files, for `chorale explain`: RUN/flight/HOST-RANK.json is what the guard of that host saw of the
// ranks when the run was lost, and what it said (guard_words.hpp). RANK is its first rank.
#pragma once
#include <filesystem>

#include "src/base/guard/guard_words.hpp"

namespace chorale {

// Into the folder of the run, which `local`, a rank of this host, knows; nothing if there is none yet.
void write_dump(const GuardWords& words, const SeenRank& local) noexcept;

// Reads the dumps of all hosts. Each rank appears once, in order. Throws a usage error if there are none.
GuardWords read_dumps(const std::filesystem::path& run);

}  // namespace chorale
