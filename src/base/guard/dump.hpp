// Flight recorders in files, for `chorale explain`: RUN/flight/HOST.json is what the guard of that host saw of the ranks
// when the run was lost, and what it said (guard_words.hpp).
#pragma once
#include <filesystem>

#include "src/base/guard/guard_words.hpp"

namespace chorale {

void write_dump(const GuardWords& words) noexcept;  // into the run's folder, if the ranks have one

// What the guards of all hosts wrote. The ranks are sorted and each is there once. Throws a usage error if there is nothing.
GuardWords read_dumps(const std::filesystem::path& run);

}  // namespace chorale
