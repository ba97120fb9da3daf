// The report as one HTML file that needs nothing else: no script, no network. It is read on a telephone and a laptop, in
// light and dark, and printed; every picture has words for those who do not see it, and its numbers in a table below.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string page_of(const RecordSet& records);

}  // namespace chorale::report
