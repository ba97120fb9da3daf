// What differs between two sets of records besides what was measured: the machine, the settings, the program. A comparison
// says it first, since a ratio of two models, layouts or machines answers another question than whether a change made
// something slower.
#pragma once
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

TextTable differing_conditions(const RecordSet& one, const RecordSet& other);  // a row for each; none where all is alike

}  // namespace chorale::report
