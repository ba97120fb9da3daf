// The table of algorithms. Tests, `verify` and `show` go through all rows. A new algorithm needs its own file, and a
// declaration and a row in algorithms.cpp.
#pragma once
#include <string>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace chorale {

struct Algorithm {
  Collective what;
  const char* name;
  Schedule (*plan)(const Problem&);  // pure: the schedule depends only on the problem
  const char* about;
  bool (*fits)(const Problem&) = nullptr;  // which problems it can solve; nullptr: all
};

inline bool fits(const Algorithm& algorithm, const Problem& problem) { return !algorithm.fits || algorithm.fits(problem); }
inline bool power_of_two_ranks(const Problem& p) { return (p.size & (p.size - 1)) == 0; }

const std::vector<Algorithm>& all_algorithms();
const Algorithm* find_algorithm(Collective what, const std::string& name);  // nullptr if none has that name
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const Problem& problem);
// The same for problems that differ between ranks, as in an uneven all_to_all.
std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const std::vector<Problem>& problems);

}  // namespace chorale
