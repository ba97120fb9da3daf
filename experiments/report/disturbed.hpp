// States whether other programs disturbed the runs that a report shows. The run itself printed a warning to stderr, but
// tables and pages do not contain this warning. Each report therefore repeats the warning in one line, from the values in
// /ranks.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// Returns a warning about the busiest host of all runs: "vm was busy: other programs use 1.6 of its 2 cores (load 3.1);
// times vary more than on a quiet machine". Returns "" if no host was busy. Simulated runs are ignored.
std::string disturbance_of(const RecordSet& records);

}  // namespace chorale::report
