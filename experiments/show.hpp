// The text that `chorale show` prints about algorithms: one in full, or many as a price list.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "collectives/algorithms.hpp"

namespace chorale {

// A picture of the rounds, or the steps of every rank; then the price and the order of the sums.
std::string describe_algorithm(const Algorithm& algorithm, const std::vector<Schedule>& ranks, bool steps);

std::string list_algorithms(const std::vector<const Algorithm*>& algorithms,
                            const std::function<Problem(Collective)>& problem_for);

}  // namespace chorale
