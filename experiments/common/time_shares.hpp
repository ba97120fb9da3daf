// How the ranks of a predicted step spend their time: kernels by kind, calls, waits for each axis.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parallel/prediction/system_step.hpp"

namespace chorale {

double spent(const ClassTime& time, Spent kind);
std::set<std::string> waited_axes(const ExecutedStep& step);

// The seconds that a rank spends on each kind of work or waiting. The means over all ranks add up to the step time.
using Shares = std::vector<std::pair<std::string, double>>;
Shares shares_of(const ClassTime& time, const std::set<std::string>& axes);  // with a wait for each of `axes`
Shares shares_of(const PredictedStep& step, std::size_t rank_class);  // of one rank of a class; classes have equal kinds
Shares mean_shares(const PredictedStep& step);

}  // namespace chorale
