// Reduces the runs of one label to the samples of a comparison (experiments/statistics.hpp): one number per block or launch,
// the median of its measurements.
//
//   block    one repetition of a suite. Its runs took turns, so runs of the same repetition are partners.
//   launch   all repetitions that one launch made. Two records are compared by launches.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "experiments/report/record_set.hpp"
#include "experiments/statistics.hpp"

namespace chorale::report {

using Samples = std::function<std::vector<double>(const Run&)>;  // the steps or the calls of one run

ByBlock per_block(const std::vector<const Run*>& runs, const Samples& samples);
ByBlock per_launch(const std::vector<const Run*>& runs, const Samples& samples);

// The spread of the runs: the 95 % interval for six blocks or more, otherwise the extremes. A single run shows the interval
// of its own samples, which says nothing about the next run.
Summary spread_of(const std::vector<const Run*>& runs, const Samples& samples);

// "paired t-test over 6 repetitions": the test that compares these kinds of run, of which there are at least two.
std::string test_for(const std::vector<ByBlock>& kinds);

// The name of a spread: "range of the runs", or "95 % interval of its steps' median" if one run shows its own steps.
std::string spread_name(bool one_run, bool has_interval, const std::string& samples = "steps");

// The column heading for rows with these kinds of spread.
std::string spread_names(const std::set<std::string>& kinds);

}  // namespace chorale::report
