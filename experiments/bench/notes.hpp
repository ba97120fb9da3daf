// The notes above the tables of `bench` are lines that begin with "# ". The notes explain the values and their limitations.
#pragma once
#include <cstdint>
#include <string>

#include "experiments/bench/series_row.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::bench {

// Explains values above 100 % in the column ±, and explains the ceiling column. Returns "" if the tables have no such values
// and no ceiling column.
std::string how_to_read(const Rows& rows);

// Says which prices were not measured on this machine, how accurate the predictions were, and why one rank has no bandwidth.
// `processes`: number of processes in the commands that the notes recommend.
std::string limits(const Rows& rows, std::int64_t processes);

// Says from which machine file the predicted times come. `here`: the file of this machine.
std::string origins(const Rows& rows, const Machine& here);

// Returns a note such as "# vm was busy: …" for the warning of a disturbed measurement; "" if there was no warning.
std::string disturbed(const std::string& warning);

}  // namespace chorale::bench
