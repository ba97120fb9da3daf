// The checker proves that the schedules of all ranks are correct. The checker runs the schedules on symbols in one process.
// An element's symbol holds the element's index in the vector, and the set of ranks that have contributed to the element. At
// the end, every output element must be the expected element of the vector, with exactly one contribution from each expected
// rank. The proof also shows:
//
//   nothing is read before it is written                 every message sent is received, with the same length
//   steps that conflict on an element are ordered        no deadlock, even if every send waits for its receive
//   every step has a shape that backends can run         the input is unchanged, unless it is also the output
//
// Messages from one rank to another are matched in the order of their steps, as on every backend. A barrier's token is a
// symbol too. At the end of a barrier, every rank's token must have contributions from all ranks. A barrier is the only
// collective in which a rank may contribute twice.
#pragma once
#include <chorale/algorithm.hpp>
#include <string>

namespace chorale {

// The checks of find_flaw that need no symbols (checker_shape.cpp, checker_order.cpp). Each function returns the description
// of a flaw, or "" if there is none.
class StepGraph;
std::string find_misshapen(const Schedule& schedule);  // finds a step that backends cannot run
std::string find_hazard(const Schedule& schedule);     // finds two conflicting steps that are not ordered
std::string find_deadlock(const StepGraph& graph);

}  // namespace chorale
