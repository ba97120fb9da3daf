// Chorale's table of collective algorithms, and the declarations for writing your own algorithms
// (examples/2_own_algorithm.cpp).
//
//   const Algorithm mine{Collective::all_reduce, "line", line, "up the line of ranks, and back down"};
//   find_flaw(plan_all_ranks(mine, Problem::even(mine.what, 100, 4)))     "" if the algorithm is correct
//   draw_text(plan_all_ranks(mine, …))                                    each rank's data after each round
//   world.choose(mine)                                                    the group now runs this algorithm
#pragma once
#include <chorale/element.hpp>
#include <chorale/schedule.hpp>
#include <string>
#include <vector>

namespace chorale {

struct Algorithm {
  Collective what;
  const char* name;
  Schedule (*plan)(const Problem&);  // a pure function, whose schedule depends only on the problem
  const char* about;
  bool (*fits)(const Problem&) = nullptr;  // whether the algorithm can solve a problem; null if it solves all
};

inline bool fits(const Algorithm& algorithm, const Problem& problem) { return !algorithm.fits || algorithm.fits(problem); }
inline bool power_of_two_ranks(const Problem& p) { return (p.size & (p.size - 1)) == 0; }

const std::vector<Algorithm>& all_algorithms();
const Algorithm* find_algorithm(Collective what, const std::string& name);  // nullptr if there is none
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const Problem& problem);
// Plans the schedules of all ranks for problems that differ between ranks, as in an uneven all_to_all. `problems` has one
// problem per rank, in rank order.
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const std::vector<Problem>& problems);

// ── proof and picture ──

// Returns "" if the schedules (one per rank, in rank order) are correct. If they are not correct, returns the description of
// a flaw, with the rank, the step and the element.
std::string find_flaw(const std::vector<Schedule>& ranks);

// Returns a table for the start and for each round, with a row per rank and a column per block of the vector. The last
// column lists the blocks that the rank sends in the round. A cell names the ranks that have contributed to the block, such
// as 0+3. Σ means that all ranks have contributed; · means that the rank has no data of the block yet. With more than 8
// ranks, a cell shows only the number of ranks. ⇒ marks messages between hosts.
std::string draw_text(const std::vector<Schedule>& ranks);

// ── the algorithm of a call ──

// Whether the backend library's own collective ("native") returns the same results as Chorale's algorithms, apart from the
// rounding of floating-point sums and products. Open MPI's u8 sums saturate, whereas Chorale's u8 sums wrap around. In MPI
// and NCCL, min and max can drop a NaN, depending on rank order. Chorale's min and max always propagate a NaN. MPI's element
// counts are limited to an int.
bool native_agrees(const Problem& problem, DType dtype, Redop op);

struct Choice {
  std::string algorithm;           // name of an algorithm in the table, or "native"
  int chunks = 1;                  // number of chunks into which the schedule is split
  std::string why;                 // the reason for the choice, as readable text
  const Algorithm* own = nullptr;  // the caller's own algorithm, outside the table
  bool everywhere = false;         // the user requested this name for all collectives that have an algorithm of this name
};

}  // namespace chorale
