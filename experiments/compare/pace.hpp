// Keeps a comparison within a time budget. The first round (rounds.hpp) always takes place, so that every run runs once,
// even if this exceeds the budget. Then as many complete rounds follow as fit. Runs are never shortened, so the amount of
// training in a run does not depend on the machine's speed.
//
//   turns      A C B D | B A D C | …        a round starts if the rest of the budget is at least its number of turns
//                                           times the mean turn of the slowest round so far
//
// A resumed comparison has only the remaining turns, so its first round can be shorter.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale::compare {

class Pace {
 public:
  // Starts now. A budget of 0 seconds means no limit. Element r of `left` is the number of remaining turns (repetitions of a
  // run) in round r + 1.
  Pace(double budget_seconds, std::vector<std::int64_t> left, Clock& clock);

  bool may_begin(std::int64_t round);  // whether a turn of this round is allowed to run; call it before every turn
  // Predicts how many of the remaining turns will run, from the mean time of the first `done` turns. Call it after
  // may_begin(). Counts the complete rounds that fit into the budget, but at least the current round.
  std::int64_t expected(std::int64_t done) const;
  // Returns the predicted seconds of the first round if they exceed the budget and `done` turns are enough for a prediction;
  // otherwise 0. If there are many turns, the first turn alone is not enough, because it also measures the machine's peak.
  double overrun(std::int64_t done) const;

 private:
  double turns_of(std::int64_t round) const;

  double budget_;
  std::vector<std::int64_t> left_;
  double began_, round_began_, slowest_ = 0;  // slowest_: seconds of a turn in the slowest round so far
  std::int64_t round_ = 0, first_ = 0;        // 0: no round has begun
  Clock& clock_;
};

}  // namespace chorale::compare
