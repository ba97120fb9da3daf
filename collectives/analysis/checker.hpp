// Proves a schedule, for all its ranks at once, by running it on symbols in one process. Each element of each buffer is the set of
// ranks that have contributed to it; at the end it must be exactly the set it should be, each rank once. Shown along the way:
//
//   nothing is read before it is written                 every message that is sent is received, with the same length
//   no two unordered steps touch the same element        no deadlock, even when every send waits for its receive
//   every step has a shape that backends can run         the input is left alone, unless it is the output too
//
// Messages from one rank to another are matched in the order in which their steps stand, as on every backend. A barrier's token is a
// symbol too: it must carry everybody's arrival at the end, and there may do so twice.
#pragma once
#include <string>
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

// "" when the schedules (one a rank, in rank order) are proved; else what is wrong, naming the rank, the step and the element.
std::string find_flaw(const std::vector<Schedule>& ranks);

// Its parts that need no symbols, in checker_shape.cpp and checker_order.cpp.
class Flow;
std::string find_misshapen(const Schedule& schedule);
std::string find_hazard(const Schedule& schedule);
std::string find_deadlock(const std::vector<Schedule>& ranks, const Flow& flow);

}  // namespace chorale
