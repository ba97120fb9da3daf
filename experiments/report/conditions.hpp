// Lists the conditions that differ between two sets of records: machine, settings, program. A comparison prints this list
// first. If models, layouts or machines differ, a ratio does not show the effect of a change of the code.
#pragma once
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

TextTable differing_conditions(const RecordSet& one, const RecordSet& other);  // one row per difference

}  // namespace chorale::report
