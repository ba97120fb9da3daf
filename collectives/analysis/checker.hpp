// Proves that the schedules of all ranks are correct, by running them on symbols in one process. The symbol of an element
// says which element of the vector it is, and which ranks have contributed to it. At the end, every output element must hold
// the right element, with exactly one contribution from each of the right ranks. The proof also shows:
//
//   nothing is read before it is written                 every message sent is received, with the same length
//   steps that conflict on an element are ordered        no deadlock, even if every send waits for its receive
//   every step has a shape that backends can run         the input is unchanged, unless it is also the output
//
// Messages from one rank to another are matched in the order of their steps, as on every backend. A barrier's token is a
// symbol too. At the end, every rank's token must have contributions from all ranks. Only in a barrier may a rank contribute
// twice.
#pragma once
#include <chorale/algorithm.hpp>
#include <string>
#include <vector>

namespace chorale {

// The parts of find_flaw that need no symbols. They are in checker_shape.cpp and checker_order.cpp. Each returns "" or a
// flaw.
class Flow;
std::string find_misshapen(const Schedule& schedule);  // a step that backends cannot run
std::string find_hazard(const Schedule& schedule);     // two steps that conflict and are not ordered
std::string find_deadlock(const std::vector<Schedule>& ranks, const Flow& flow);

}  // namespace chorale
