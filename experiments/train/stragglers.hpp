// Finds ranks that compute so much more slowly than their peers that the whole run waits for them. Causes are, for example,
// a throttled core, another program on the core, or experts that get more tokens than others. The peers of a rank are the
// ranks with the same work: those of its pipeline stage that have the same part of a sequence.
//
//   busy(rank)   the median over the last 10 steps of the time that the rank computes: data, passes, optimizer
//   slow         busy(rank) > 1.7 · the median busy of its peers; it has recovered below 1.3
//
// If a rank has no peers, as in a pipeline with one rank per stage, all ranks are compared by their flops in the plan.
// Differences of 20 % between two ranks (0.8 and 1.2) are a ratio of 1.5, so they are no alarm.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "experiments/train/records.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale::train {

class Stragglers {
 public:
  explicit Stragglers(const PlanRequest& request);
  // Takes the shares of one more step, by rank. Returns each rank that has become slow, with a text that says how slow it
  // is.
  std::vector<std::pair<std::size_t, std::string>> step(const std::vector<RankShare>& shares);

 private:
  std::vector<std::vector<std::size_t>> peers_;  // groups of ranks that are compared
  std::vector<double> work_;                     // by rank: the work of one step, in any unit
  std::vector<std::deque<double>> busy_;         // by rank: seconds of the last steps
  std::vector<bool> named_;                      // by rank: it was named, and has not recovered since
};

}  // namespace chorale::train
