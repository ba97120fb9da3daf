// Finds, for each output element, the order and the grouping in which an algorithm sums the ranks' contributions.
// Floating-point additions round, so the results of algorithms with different addition trees may differ in the last bits.
// Algorithms with the same addition tree have bit-identical results.
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

// Element [r][i] of the result is an expression in `sums`: the final value of rank r's output element i. The value −1 means
// that no step writes this output element.
std::vector<std::vector<int>> reduction_order(const std::vector<Schedule>& ranks, Expressions& sums);

// Returns the algorithms that fit the problem, divided into classes. For this problem, the results of all algorithms in a
// class are bit-identical.
std::vector<std::vector<const Algorithm*>> bitwise_classes(const Problem& problem, Rounding rounding);

// Returns one line of text for each run of consecutive elements that are summed in the same order. The text has at most
// `most_lines` such lines. Returns "" if the collective adds nothing.
std::string describe_reduction_order(const std::vector<Schedule>& ranks, std::size_t most_lines);

}  // namespace chorale
