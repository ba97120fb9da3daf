// Algorithms: the table of the library, and what you need to write one of your own (examples/2_own_algorithm.cpp).
//
//   const Algorithm mine{Collective::all_reduce, "line", line, "up the line of ranks, and back down"};
//   find_flaw(plan_all_ranks(mine, Problem::even(mine.what, 100, 4)))     "" if the algorithm is proved
//   draw_text(plan_all_ranks(mine, …))                                    what every rank holds after every round
//   world.choose(mine)                                                    makes the group run it
#pragma once
#include <chorale/element.hpp>
#include <chorale/schedule.hpp>
#include <string>
#include <vector>

namespace chorale {

struct Algorithm {
  Collective what;
  const char* name;
  Schedule (*plan)(const Problem&);  // pure: the schedule depends only on the problem
  const char* about;
  bool (*fits)(const Problem&) = nullptr;  // whether it can solve a problem; nullptr: it solves all
};

inline bool fits(const Algorithm& algorithm, const Problem& problem) { return !algorithm.fits || algorithm.fits(problem); }
inline bool power_of_two_ranks(const Problem& p) { return (p.size & (p.size - 1)) == 0; }

const std::vector<Algorithm>& all_algorithms();
const Algorithm* find_algorithm(Collective what, const std::string& name);  // nullptr if none has that name
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const Problem& problem);
// The same for problems that differ between ranks, for example those of an uneven all_to_all. `problems` is in rank order.
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const std::vector<Problem>& problems);

// ── proof and picture ──

// Returns "" if the schedules (one per rank, in rank order) are correct. Otherwise describes a flaw and names its rank, step
// and element.
std::string find_flaw(const std::vector<Schedule>& ranks);

// Shows what every rank holds after each round, one column per block of the vector, and what it sends in that round. A cell
// names the ranks whose contributions are in it: 0+3; Σ means all of them, and · nothing yet. With more than 8 ranks, a cell
// counts the ranks. ⇒ marks messages between hosts.
std::string draw_text(const std::vector<Schedule>& ranks);

// ── what a call runs ──

// Whether the native collective gives the same results as our algorithms, except for the rounding of floating-point sums and
// products. Open MPI's sums of u8 saturate; our sums wrap. The min and max of MPI and NCCL may lose a NaN, depending on rank
// order; our min and max always keep it. MPI limits counts to an int.
bool native_agrees(const Problem& problem, DType dtype, Redop op);

struct Choice {
  std::string algorithm;           // a name in the table of algorithms, or "native"
  int chunks = 1;                  // number of chunks into which its schedule is cut
  std::string why;                 // the reason, for people to read
  const Algorithm* own = nullptr;  // the caller's own algorithm, outside the table
  bool everywhere = false;         // requested for every collective that has an algorithm of this name
};

}  // namespace chorale
