// Chooses the metric that ranks the training runs of a comparison (ranking.hpp).
//
//   tokens/s        highest is best     a sample is a repetition, in which all runs alternated
//   held-out loss   lowest is best      a sample is a seed: repetitions with the same seed have the same loss, so they are
//                                       not independent. Runs that differ only in their seed are therefore one row
//
// The suite (`metric`) or --metric names the metric. Otherwise the settings decide. Some options, such as lr, change what
// runs learn but not their speed (Effect::learning). If the runs differ in such a setting, the metric is their loss, because
// comparing their speed would be pointless.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale::report {

inline constexpr const char *by_settings = "auto", *by_speed = "tokens/s", *by_loss = "held-out loss";
const std::vector<std::string>& metrics();                  // the names of all metrics (ranking.cpp)
Option& add_metric(Options& options, std::string& metric);  // adds --metric

// Chooses the metric by the settings in which training runs differ.
std::string metric_for(const std::set<std::string>& differing);
// Returns the settings that change what a run learns, except its seed.
std::vector<std::string> that_change_learning(const std::set<std::string>& differing);

}  // namespace chorale::report
