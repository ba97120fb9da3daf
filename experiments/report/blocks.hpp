// Runs with the same label (record_set.hpp) are repetitions of each other. This file reduces repetitions to the samples of a
// comparison (experiments/common/statistics.hpp), one value per block or launch. The value of a block or launch is the
// median over its runs. The value of each run is the median of its steps or calls.
//
//   block    one repetition of a suite. Its runs were executed one after the other, and are compared in pairs.
//   launch   one start of the program, with all repetitions in it. Two records are compared launch by launch.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "experiments/common/statistics.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

using Samples = std::function<std::vector<double>(const RecordedRun&)>;  // the steps or the calls of one run
inline Samples steady_steps(const char* column) {  // the steps after the warm-up, of a column of /train
  return [column](const RecordedRun& run) { return run.steady(column); };
}

ByBlock per_block(const std::vector<const RecordedRun*>& runs, const Samples& samples);
ByBlock per_launch(const std::vector<const RecordedRun*>& runs, const Samples& samples);

// Returns the median of the blocks and their spread. The spread is the 95 % interval if there are six blocks or more;
// otherwise, the spread is the range. For a single run, median and spread describe its steps or calls, and say nothing about
// the next run.
Summary spread_of(const std::vector<const RecordedRun*>& runs, const Samples& samples);

// For a value that each run has once, returns the median over the blocks and the spread of the blocks. Runs without the
// value (NaN) are ignored. If no run has the value, the median is NaN.
Summary over_repetitions(const std::vector<const RecordedRun*>& runs,
                         const std::function<double(const RecordedRun&)>& number);

// Like over_repetitions(), for each of several values of a run, such as one value per rank. A run with a different number of
// values is ignored.
std::vector<Summary> each_over_repetitions(const std::vector<const RecordedRun*>& runs, const Samples& numbers);
std::vector<double> medians_of(const std::vector<Summary>& summaries);

// The name of the test that compares the given kinds of run (two or more): "paired t-test over 6 repetitions". `blocks`: the
// name of the blocks by which runs are paired.
std::string test_for(const std::vector<ByBlock>& kinds, const std::string& blocks = "repetitions");

// The name of a spread: "range of the runs", or, for one run, "95 % interval of its steps' median". `samples`: the word for
// the samples of a run, steps or calls.
std::string spread_name(bool one_run, bool has_interval, const std::string& samples = "steps");

// Returns the heading of a column of spreads. `kinds`: the names of the spreads in its rows.
std::string spread_names(const std::set<std::string>& kinds);

}  // namespace chorale::report
