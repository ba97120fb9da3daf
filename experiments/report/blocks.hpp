// Runs of one label as what a comparison takes: one number for each block or launch (experiments/statistics.hpp), the
// median of what was measured in it.
//
//   block    one repetition of a suite, whose runs took turns: partners are other runs of that repetition
//   launch   all repetitions that one launch made: what tells two records apart
#pragma once
#include <functional>
#include <set>
#include <string>

#include "experiments/report/record_set.hpp"
#include "experiments/statistics.hpp"

namespace chorale::report {

using Samples = std::function<std::vector<double>(const Run&)>;  // of one run: its steps, or its calls

ByBlock per_block(const std::vector<const Run*>& runs, const Samples& samples);
ByBlock per_launch(const std::vector<const Run*>& runs, const Samples& samples);

// Where the runs lie: the 95 % interval of six blocks or more, else the extremes. A single run shows the interval of its
// own samples, which says nothing of the next run.
Summary spread_of(const std::vector<const Run*>& runs, const Samples& samples);

// "paired t-test over 6 repetitions": what tells these kinds of run apart. There are two or more.
std::string test_for(const std::vector<ByBlock>& kinds);

// What such a spread is: "range of the runs", or "95 % interval of its steps' median" where one run shows its own steps.
std::string spread_name(bool one_run, bool has_interval, const std::string& samples = "steps");

// The heading of a column whose rows have these kinds of spread.
std::string spread_names(const std::set<std::string>& kinds);

}  // namespace chorale::report
