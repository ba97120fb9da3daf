// The labels of runs: the layout of a training run, and the settings in which the runs of one command differ.
//
//   dp4              dp4, lr 0.001         bench on 4 ranks, algorithm ring        dp4 → dp3, a launch that lost a rank
//
// Runs with the same label are repetitions of each other. A row of a CSV file is never a repetition of a run of Chorale. If
// a run of Chorale has the same label, the row's label also names the CSV file, as in "dp4 (mine.csv)".
#pragma once
#include <set>
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// Sets label, layout and differing of all runs. `metric`: the metric that ranks the runs (metric.hpp).
void label_all(std::vector<RecordedRun>& runs, const std::string& metric);

std::set<std::string> settings_that_differ(const std::vector<RecordedRun>& runs, const std::string& command);
std::string in_label(const std::string& setting, const std::string& value);  // the form in labels: "lr 0.001"

}  // namespace chorale::report
