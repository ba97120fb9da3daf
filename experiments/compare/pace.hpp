// Keeps a comparison within a time budget. The first round (rounds.hpp) always takes place, so that every run runs once,
// however long that takes. Then as many whole rounds follow as fit. Runs are never shortened, so what a run trains does not
// depend on the machine's speed.
//
//   turns      A C B D | B A D C | …        a round starts if the rest of the budget is at least its number of turns
//                                           times the mean turn of the slowest round so far
//
// A resumed comparison has only the turns that are left, so its first round may be short.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale::compare {

class Pace {
 public:
  // Starts now. 0 seconds: no limit. Element r of `left` is the number of turns that round r + 1 still has to run.
  Pace(double budget_seconds, std::vector<std::int64_t> left, Clock& clock);

  bool may_begin(std::int64_t round);  // whether this turn may run; call it before every turn
  // Predicts how many of the turns left will run, from the mean time of the first `done` turns. Call it after may_begin().
  // Counts whole rounds: those that fit into the budget, but at least the current one.
  std::int64_t expected(std::int64_t done) const;
  // The seconds that the first round will probably take, if that is more than the budget and `done` turns are enough to
  // predict it; otherwise 0. One turn of many predicts little, because the first also measures the machine's peak.
  double overrun(std::int64_t done) const;

 private:
  double turns_of(std::int64_t round) const;

  double budget_;
  std::vector<std::int64_t> left_;
  double began_, round_began_, slowest_ = 0;  // slowest_: seconds of a turn, the largest mean of a round
  std::int64_t round_ = 0, first_ = 0;        // 0: no round has begun
  Clock& clock_;
};

}  // namespace chorale::compare
