// Runs of one label as what a comparison takes: one number for each block or launch (experiments/statistics.hpp), the
// median of what was measured in it.
//
//   block    one repetition of a suite, whose runs took turns: partners are other runs of that repetition
//   launch   all repetitions that one launch made: what tells two records apart
#pragma once
#include <functional>

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

// The heading of a column of such spreads, where each row has at least so many blocks.
inline const char* spread_name(std::size_t blocks) { return blocks < fewest_blocks ? "range" : "95 % interval"; }

}  // namespace chorale::report
