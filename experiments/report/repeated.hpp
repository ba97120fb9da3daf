// Finds files that record the same run, whatever their names. A run counts once in a report, and is not compared with
// itself.
#pragma once
#include <string>
#include <vector>

namespace chorale::report {

// Removes files that record the same run as an earlier file in the list. For example, the pattern runs/*/run.h5 also matches
// runs/latest/run.h5, whose folder is a link to the newest run.
void leave_out_repeated(std::vector<std::string>& files);

// Says how A equals B if both have the same launches, otherwise "". Neither list contains a file twice.
std::string how_equal(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace chorale::report
