// Reads rows of a comparison that were not measured by chorale, from a CSV file:
//
//   label,tokens/s,held-out loss
//   "PyTorch, compiled",5210,
//   "PyTorch, compiled",5188.5,
//
// Each line is one run. Lines with the same label are repetitions of each other. These runs did not alternate with other
// runs, so they are not paired. The columns `held-out loss` and `ranks` are optional. Unknown columns are ignored.
#pragma once
#include "experiments/report/record_set.hpp"

namespace chorale::report {

inline constexpr const char* rows_beside = "outside.csv";  // file that is read with every record in its folder
bool is_csv(const std::string& file);
// Adds the CSV files in the folders of these files, unless the list already has them.
std::vector<std::string> with_rows_beside(const std::vector<std::string>& files);
std::vector<RecordedRun> runs_in_csv(const std::string& file);  // throws a usage error that names the line

// Appends the rows of a CSV file to the variables of /summary. Each row becomes a row of the suite's table: "mine-r1",
// "mine-r2", ….
void append_to_summary(std::vector<Variable>& summary, const std::vector<RecordedRun>& rows);

}  // namespace chorale::report
