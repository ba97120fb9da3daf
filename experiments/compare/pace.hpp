// A comparison within a time budget: every run once, whatever that takes, then as many whole repetitions as fit. Runs are
// never shortened, so what a run trains does not depend on how fast the machine is.
//
//   turns      A C B D | B A D C | …        a repetition begins if one as long as the longest so far still fits
#pragma once
#include <cstdint>

#include "src/base/clock.hpp"

namespace chorale::compare {

class Pace {
 public:
  Pace(double budget_seconds, Clock& clock);  // begins now; 0 seconds: no limit

  bool may_begin(std::int64_t repetition);  // asked before every turn
  // How many of `all` turns will be taken if the rest take as long as the `done` so far; `each` make a repetition.
  std::int64_t expected(std::int64_t done, std::int64_t all, std::int64_t each) const;

 private:
  double budget_, began_, repetition_began_, longest_ = 0;
  std::int64_t repetition_ = 0;  // 0: none has begun
  Clock& clock_;
};

}  // namespace chorale::compare
