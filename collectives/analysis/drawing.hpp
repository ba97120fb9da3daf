// Draws schedules, from the same data that is proved and executed.
//
// draw_text: shows what every rank holds after each round (one column per block of the vector) and what it sends in that
// round:
//
//   round 1
//   rank  a    b    c    d    sends                     0+3    the contributions of ranks 0 and 3, added
//   0     0    0    0+3  0    d → 1                      Σ     all contributions: the block is complete
//   1     1    1    1    0+1  a → 2                      ·     nothing yet
//
// A rank's buffers may hold several partial sums of a block; the cell shows the most complete one. In collectives without
// sums, a cell names the ranks from which the data of that block came. With more than 8 ranks, a cell counts the ranks of a
// sum instead of naming them. "…" means that other elements of the block have different or more contributions.
//
// If ranks are on several hosts, a column names each rank's host, and ⇒ marks messages between hosts.
//
// draw_svg: draws a space-time diagram. Each rank has a horizontal lane. Time, predicted with `price`, runs to the right.
// Arrows are messages, and they are dashed between hosts. Bars are sums and sends.
#pragma once
#include <chorale/algorithm.hpp>
#include <string>

#include "collectives/analysis/cost.hpp"

namespace chorale {

std::string draw_svg(const std::vector<Schedule>& ranks, const std::string& title, std::int64_t element_bytes,
                     const Price& price);

std::string block_name(int block, int size);  // a, b, c, … for up to 26 blocks, else numbers

}  // namespace chorale
