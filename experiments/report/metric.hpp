// The metric that ranks the training runs of a comparison (ranking.hpp), and its unit of sampling.
//
//   tokens/s        the most is best    a sample is a repetition, in which all runs took turns
//   held-out loss   the least is best   a sample is a seed: repetitions with one seed repeat its loss, so they say nothing
//                                       about chance. Runs that differ only in their seed are therefore one row
//
// The suite (`metric`) or --metric names the metric. Otherwise the settings decide. If the runs differ in a setting that
// changes what they learn but not their speed, such as lr, they are judged by their loss, because comparing their speed
// would be pointless.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale::report {

inline constexpr const char *by_settings = "auto", *by_speed = "tokens/s", *by_loss = "held-out loss";
const std::vector<std::string>& metrics();                  // their names (ranking.cpp)
Option& add_metric(Options& options, std::string& metric);  // --metric

// Chooses the metric by the settings in which training runs differ.
std::string metric_for(const std::set<std::string>& differing);
// Returns the settings that change what a run learns, except its seed.
std::vector<std::string> that_change_learning(const std::set<std::string>& differing);

}  // namespace chorale::report
