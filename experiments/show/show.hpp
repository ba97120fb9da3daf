// The text that `chorale show` prints about collective algorithms: one algorithm in full, or a table of many with their
// costs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "collectives/choice/selection.hpp"

namespace chorale {

// Draws the rounds or, if `steps` is set, lists the steps of every rank. Appends the algorithm's cost and the order of its
// sums.
std::string describe_algorithm(const Algorithm& algorithm, const std::vector<Schedule>& ranks, bool steps);

// Lists one line per algorithm with its cost. `problem_for` returns the problem for which a collective's algorithms are
// compared.
std::string list_algorithms(const std::vector<const Algorithm*>& algorithms,
                            const std::function<Problem(Collective)>& problem_for);

// The predicted times of the algorithm, by the machine file's prices, on problems like `shape` with several sizes. If there
// are no prices, returns a line with this remark.
std::string times_of(const Algorithm& algorithm, const Problem& shape, int chunks, const Selector& selector);

}  // namespace chorale
