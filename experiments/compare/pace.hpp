// A comparison within a time budget. Every run takes place once, however long that takes; then as many whole repetitions as
// fit. Runs are never shortened, so what a run trains does not depend on the machine's speed.
//
//   turns      A C B D | B A D C | …        a repetition starts if there is time for one as long as the longest so far
#pragma once
#include <cstdint>

#include "src/base/clock.hpp"

namespace chorale::compare {

class Pace {
 public:
  Pace(double budget_seconds, Clock& clock);  // starts now; 0 seconds: no limit

  bool may_begin(std::int64_t repetition);  // called before every turn
  // How many of `all` turns will run if the rest take as long as the first `done`. `each` turns make a repetition.
  std::int64_t expected(std::int64_t done, std::int64_t all, std::int64_t each) const;

 private:
  double budget_, began_, repetition_began_, longest_ = 0;
  std::int64_t repetition_ = 0;  // 0: none has begun
  Clock& clock_;
};

}  // namespace chorale::compare
