// Lists the conditions in which two sets of records differ: machine, settings, program. A comparison prints this list first,
// because a ratio between two models, layouts or machines does not show what a change of the code did.
#pragma once
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

TextTable differing_conditions(const RecordSet& one, const RecordSet& other);  // one row per difference

}  // namespace chorale::report
