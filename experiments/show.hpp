// The text that `chorale show` prints about collective algorithms: one algorithm in full, or a table with prices of many.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "collectives/algorithms.hpp"

namespace chorale {

// Draws the rounds or, if `steps` is set, lists the steps of every rank. Then the price and the order of the sums follow.
std::string describe_algorithm(const Algorithm& algorithm, const std::vector<Schedule>& ranks, bool steps);

// One line per algorithm with its price. `problem_for` returns the problem on which algorithms of a collective are priced.
std::string list_algorithms(const std::vector<const Algorithm*>& algorithms,
                            const std::function<Problem(Collective)>& problem_for);

}  // namespace chorale
