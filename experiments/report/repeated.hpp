// Finds files that record the same run under different names. In a report, a run is counted only once, and is not compared
// with itself.
#pragma once
#include <string>
#include <vector>

namespace chorale::report {

// Removes files that record the same run as an earlier file in the list. For example, the pattern runs/*/run.h5 also matches
// runs/latest/run.h5, whose folder is a link to the newest run.
void leave_out_repeated(std::vector<std::string>& files);

// If A and B have the same launches, describes how they are equal; otherwise returns "". Neither list contains a file twice.
std::string how_equal(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace chorale::report
