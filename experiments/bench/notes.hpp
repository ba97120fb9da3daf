// The notes above the tables of `bench` are lines that begin with "# ". They explain the values and their limitations.
#pragma once
#include <cstdint>
#include <string>

#include "experiments/bench/series_row.hpp"

namespace chorale::bench {

// Explains the column ± if it exceeds 100 %, and the column of ceilings. "" if the tables have neither.
std::string how_to_read(const Rows& rows);

// Says which prices were not measured on this machine, how accurate the predictions were, and why one rank has no bandwidth.
// `processes`: number of processes in the commands that the notes recommend.
std::string limits(const Rows& rows, std::int64_t processes);

// "# vm was busy: …", from the warning of a disturbed measurement; "" if there was no warning.
std::string disturbed(const std::string& warning);

}  // namespace chorale::bench
