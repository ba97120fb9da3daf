// Finds, for each output element, the order and the grouping in which an algorithm sums the ranks' contributions. Floats are
// rounded, so algorithms with different trees of additions may differ in the last bits. Algorithms with the same tree are
// bit-identical.
//
//   ring, p = 4                  element of block 0     (r0 + ((r1 + r2) + r3))
//   recursive doubling, p = 4    every element          ((r0 + r1) + (r2 + r3))
//   one-shot                     every element          (r0 + r1 + r2 + r3), in rank order, for any p
#pragma once
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "collectives/analysis/expressions.hpp"

namespace chorale {

// Element [r][i]: the expression in `sums` that rank r's output element i holds at the end; −1 if nothing is written there.
std::vector<std::vector<int>> reduction_order(const std::vector<Schedule>& ranks, Expressions& sums);

// The algorithms that fit the problem, in classes: for this problem, the results of all algorithms in a class are
// bit-identical.
std::vector<std::vector<const Algorithm*>> bitwise_classes(const Problem& problem, Rounding rounding);

// Text with one line for each run of consecutive elements that are summed in the same order, and with at most `most_lines`
// lines. "" if the collective adds nothing.
std::string describe_reduction_order(const std::vector<Schedule>& ranks, std::size_t most_lines);

}  // namespace chorale
