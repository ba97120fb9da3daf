// The notes above the tables of `bench`: lines that begin with "# ". They explain the numbers and their limits.
#pragma once
#include <cstdint>
#include <string>

#include "experiments/bench/series_row.hpp"

namespace chorale::bench {

// Explains two columns: ± beyond 100 %, and the ceiling. "" if the tables have neither.
std::string how_to_read(const Rows& rows);

// Says that prices were not measured here, how good predictions were, or that one rank has no bandwidth. `processes` is for
// the commands that it recommends.
std::string limits(const Rows& rows, std::int64_t processes);

// "# vm was busy: …", from the warning of a disturbed measurement; "" if there was no warning.
std::string disturbed(const std::string& warning);

}  // namespace chorale::bench
