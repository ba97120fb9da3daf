// Keeps a comparison within a time budget. The first round (rounds.hpp) always takes place, so that every run runs once,
// even if this exceeds the budget. Then further complete rounds follow, as many as fit into the budget. Runs are never
// shortened, so the amount of training in a run does not depend on the machine's speed.
//
//   turns      A C B D | B A D C | …        a round starts if the rest of the budget is at least its number of turns
//                                           times the mean time of a turn in the slowest round so far
//
// A resumed comparison has only the remaining turns, so its first round can be shorter.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale::compare {

class Pace {
 public:
  // The budget starts now. A budget of 0 seconds means no limit. Element r of `left` is the number of remaining turns
  // (repetitions of a run) in round r + 1.
  Pace(double budget_seconds, std::vector<std::int64_t> left, Clock& clock);

  bool may_begin(std::int64_t round);  // whether a turn of this round is allowed to run; call it before every turn
  // Predicts how many of the remaining turns will run, from the mean time of the first `done` turns. Call expected() after
  // may_begin(). Counts the turns of the complete rounds that fit into the budget, and at least the turns of the current
  // round.
  std::int64_t expected(std::int64_t done) const;
  // Returns the predicted time of the first round in seconds, if it exceeds the budget and `done` turns are enough for a
  // prediction. Otherwise returns 0. If there are many turns, the first turn alone is not enough, because it also measures
  // the machine's peak.
  double overrun(std::int64_t done) const;

 private:
  double turns_of(std::int64_t round) const;

  double budget_;
  std::vector<std::int64_t> left_;
  double began_, round_began_, slowest_ = 0;  // slowest_: mean time of a turn in the slowest round so far
  std::int64_t round_ = 0, first_ = 0;        // 0: no round has begun
  Clock& clock_;
};

}  // namespace chorale::compare
