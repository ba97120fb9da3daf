// The report as one self-contained HTML file, without scripts and without access to the network. Its layout suits phones,
// laptops and print, in light and dark: the page has each picture twice, for narrow and for wide windows, and shows one of
// them. Every picture has a description for screen readers and a table of the drawn numbers.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string page_of(const RecordSet& records);

}  // namespace chorale::report
