// Draws the same schedules that the checker proves and that backends execute.
//
// draw_text returns a table for each round, with a row per rank and a column per block of the vector. A row shows the
// contributions that the rank's blocks contain after the round, and the blocks that the rank sends in the round:
//
//   round 1
//   rank  a    b    c    d    sends                     0+3    the contributions of ranks 0 and 3, added
//   0     0    0    0+3  0    d → 1                      Σ     all contributions: the block is complete
//   1     1    1    1    0+1  a → 2                      ·     nothing yet
//
// If a rank's buffers hold several partial sums of a block, the cell shows the most complete sum. In collectives without
// reductions, a cell names the ranks from which the block's data originate. With more than 8 ranks, a cell shows only the
// number of ranks. "…" means that other elements of the block have different or more contributions.
//
// If the ranks are on several hosts, an extra column names each rank's host, and ⇒ marks messages between hosts.
//
// draw_svg returns a space-time diagram as SVG. Each rank has a horizontal lane. The horizontal axis is the time that the
// cost model predicts from the prices in `price`. Arrows are messages; arrows between hosts are dashed. Bars are reductions
// and sends.
#pragma once
#include <chorale/algorithm.hpp>
#include <string>

#include "collectives/analysis/cost.hpp"

namespace chorale {

std::string draw_svg(const std::vector<Schedule>& ranks, const std::string& title, std::int64_t element_bytes,
                     const Price& price);

std::string block_name(int block, int size);  // names up to 26 blocks a, b, c, …, and numbers more blocks

}  // namespace chorale
