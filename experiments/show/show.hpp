// The text that `chorale show` prints about collective algorithms: one algorithm in full, or a table of many with their
// costs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "collectives/choice/selection.hpp"

namespace chorale {

// Draws the rounds or, if `steps` is set, lists the steps of every rank. Then the algorithm's cost and the order of its sums
// follow.
std::string describe_algorithm(const Algorithm& algorithm, const std::vector<Schedule>& ranks, bool steps);

// One line per algorithm with its cost. `problem_for` returns the problem for which a collective's algorithms are compared.
std::string list_algorithms(const std::vector<const Algorithm*>& algorithms,
                            const std::function<Problem(Collective)>& problem_for);

// The algorithm's times by the machine file's prices, on problems like `shape` of several sizes; or a line that says that
// there are none.
std::string times_of(const Algorithm& algorithm, const Problem& shape, int chunks, const Selector& selector);

}  // namespace chorale
