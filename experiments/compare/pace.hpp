// Keeps a comparison within a time budget. The first repetition always takes place, so that every run runs once. Then as
// many whole repetitions follow as fit. Runs are never shortened, so what a run trains does not depend on the machine's
// speed.
//
//   turns      A C B D | B A D C | …        a repetition starts if the rest of the budget is at least as long as the
//                                           longest repetition so far
#pragma once
#include <cstdint>

#include "src/base/clock.hpp"

namespace chorale::compare {

class Pace {
 public:
  Pace(double budget_seconds, Clock& clock);  // starts now; 0 seconds: no limit

  bool may_begin(std::int64_t repetition);  // whether this turn may run; call it before every turn
  // Predicts how many of the `all` turns will run, from the mean time of the first `done` turns. A repetition has `each`
  // turns. Counts whole repetitions: those that fit into the budget, but at least the current one.
  std::int64_t expected(std::int64_t done, std::int64_t all, std::int64_t each) const;

 private:
  double budget_, began_, repetition_began_, longest_ = 0;
  std::int64_t repetition_ = 0;  // 0: none has begun
  Clock& clock_;
};

}  // namespace chorale::compare
