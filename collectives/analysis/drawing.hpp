// Pictures of schedules, drawn from the same data that is proved and executed.
//
// draw_text: what every rank holds after every round, one column a block of the vector, and what it sends in the round:
//
//   round 1
//   rank  a    b    c    d    sends                     0+3    the contributions of ranks 0 and 3, added
//   0     0    0    0+3  0    d → 1                      Σ     all that there are: the block is whole
//   1     1    1    1    0+1  a → 2                      ·     nothing yet
//
// Of several partial sums the fullest is shown, wherever it lies. Where nothing is added, a cell names the ranks whose block it is. Up
// to 8 ranks are told by name, more by their number. "…" after a cell: some elements of the block are further.
//
// draw_svg: a space-time diagram, a lane a rank, time to the right as `price` has it, arrows for messages, bars for sums.
#pragma once
#include <string>

#include "collectives/analysis/cost.hpp"

namespace chorale {

std::string draw_text(const std::vector<Schedule>& ranks);
std::string draw_svg(const std::vector<Schedule>& ranks, const std::string& title, std::int64_t element_bytes,
                     const Price& price);

std::string block_name(int block, int size);  // a, b, c, … while letters last, then numbers

}  // namespace chorale
