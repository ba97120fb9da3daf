// Finds ranks that compute much more slowly than their peers. All other ranks wait for such ranks. Causes are, for example,
// a throttled core, other programs on the core, or experts that get too many tokens. The peers of a rank are the ranks with
// the same work: the ranks of its pipeline stage that have the same part of a sequence.
//
//   busy(rank)   the median over the last 10 steps of the time in which the rank computes: data, passes, optimizer
//   slow         busy(rank) > 1.7 · the median busy time of its peers; below 1.3, the rank has recovered
//
// If some rank has no peers, as in a pipeline with one rank per stage, all ranks are compared by their time per planned
// flop. If one rank is 20 % faster and a second rank is 20 % slower than usual (0.8 and 1.2), their ratio is 1.5, which
// causes no warning.
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
  // Adds the values of one more step, by rank. Returns each rank that has become slow, with a text that says how slow it is.
  std::vector<std::pair<std::size_t, std::string>> step(const std::vector<RankShare>& shares);

 private:
  std::vector<std::vector<std::size_t>> peers_;  // groups of ranks that are compared with each other
  std::vector<double> work_;                     // by rank: the work of one step, in any unit
  std::vector<std::deque<double>> busy_;         // by rank: busy times of the last steps in seconds
  std::vector<bool> named_;                      // by rank: whether it was reported as slow and has not recovered
};

}  // namespace chorale::train
