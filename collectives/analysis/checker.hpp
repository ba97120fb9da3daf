// Proves the schedules of all ranks at once, by running them on symbols in one process. The symbol of an element is the set
// of ranks that have contributed to it. At the end every output must hold exactly the right set, each rank once. Also:
//
//   nothing is read before it is written                 every message sent is received, with the same length
//   steps that conflict on an element are ordered        no deadlock, even if every send waits for its receive
//   every step has a shape that backends can run         the input is unchanged, unless it is also the output
//
// Messages from one rank to another are matched in the order of their steps, as on every backend. A barrier's token is a
// symbol too: at the end it must hold the arrival of every rank. An arrival may reach it twice.
#pragma once
#include <string>
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

// "" if the schedules (one per rank, in rank order) are proved; else the flaw, with its rank, step and element.
std::string find_flaw(const std::vector<Schedule>& ranks);

// The parts that need no symbols, in checker_shape.cpp and checker_order.cpp.
class Flow;
std::string find_misshapen(const Schedule& schedule);
std::string find_hazard(const Schedule& schedule);
std::string find_deadlock(const std::vector<Schedule>& ranks, const Flow& flow);

}  // namespace chorale
