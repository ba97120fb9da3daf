// Finds, for each output element, the order and the grouping in which an algorithm sums the ranks' contributions.
// Floating-point additions round, so the results of algorithms with different addition trees can differ in the last bits.
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

// Entry [r][i] of the result is the number of an expression in `sums`. This expression is the final value of output element
// i on rank r. The value −1 means that no step writes this output element.
std::vector<std::vector<int>> reduction_order(const std::vector<Schedule>& ranks, Expressions& sums);

// Returns the algorithms that can solve the problem, divided into classes. For this problem, the results of all algorithms
// in a class are bit-identical.
std::vector<std::vector<const Algorithm*>> bitwise_classes(const Problem& problem, Rounding rounding);

// Returns one line of text for each range of consecutive elements that are summed in the same order. If there are more than
// `most_lines` ranges, one more line says how many elements are left out. Returns "" if the collective adds nothing.
std::string describe_reduction_order(const std::vector<Schedule>& ranks, std::size_t most_lines);

}  // namespace chorale
