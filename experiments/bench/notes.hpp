// The notes above the tables of `bench`: lines that begin with "# ". They say how numbers are meant, and how far they go.
#pragma once
#include <cstdint>
#include <string>

#include "experiments/bench/series_row.hpp"

namespace chorale::bench {

// How two columns are meant: ± beyond 100 %, and the ceiling. "" if the tables have neither.
std::string how_to_read(const Rows& rows);

// Prices were not measured here, how good predictions were, or one rank has no bandwidth. `processes`: for the commands.
std::string limits(const Rows& rows, std::int64_t processes);

// "# vm was busy: …", from the warning of a disturbed measurement; "" without one.
std::string disturbed(const std::string& warning);

}  // namespace chorale::bench
