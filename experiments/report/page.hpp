// The report as one self-contained HTML file: no script, no network. It suits phones and laptops, light and dark, and print.
// Every picture has a description for screen readers, and its numbers in a table below.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string page_of(const RecordSet& records);

}  // namespace chorale::report
