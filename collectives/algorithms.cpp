#include "collectives/algorithms.hpp"

namespace chorale {

namespace all_reduce {
Schedule ring(const Problem&);
Schedule binomial_tree(const Problem&);
Schedule recursive_doubling(const Problem&);
Schedule direct(const Problem&);
Schedule one_shot(const Problem&);
}  // namespace all_reduce
namespace reduce_scatter {
Schedule ring(const Problem&);
Schedule direct(const Problem&);
}  // namespace reduce_scatter
namespace all_gather {
Schedule ring(const Problem&);
Schedule direct(const Problem&);
}  // namespace all_gather
namespace broadcast {
Schedule binomial_tree(const Problem&);
}
namespace reduce {
Schedule binomial_tree(const Problem&);
}

const std::vector<Algorithm>& all_algorithms() {
  using enum Collective;
  static const std::vector<Algorithm> table{
      {all_reduce, "ring", all_reduce::ring, "reduce-scatter ring, then all-gather ring; neighbours only"},
      {all_reduce, "binomial_tree", all_reduce::binomial_tree, "reduce to rank 0, then broadcast; log₂ p steps each"},
      {all_reduce, "recursive_doubling", all_reduce::recursive_doubling, "whole vectors with partners 1, 2, 4, … away"},
      {all_reduce, "direct", all_reduce::direct, "each rank sums its own block, then sends it to all"},
      {all_reduce, "one_shot", all_reduce::one_shot, "everybody sends everything to all, and sums in rank order"},
      {reduce_scatter, "ring", reduce_scatter::ring, "partial sums travel once around"},
      {reduce_scatter, "direct", reduce_scatter::direct, "each rank gets its block from all and sums it"},
      {all_gather, "ring", all_gather::ring, "blocks travel once around"},
      {all_gather, "direct", all_gather::direct, "each rank sends its block to all"},
      {broadcast, "binomial_tree", broadcast::binomial_tree, "who has it passes it on; log₂ p steps"},
      {reduce, "binomial_tree", reduce::binomial_tree, "the broadcast's tree, the other way round"},
  };
  return table;
}

std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < problem.size; ++rank) ranks.push_back(algorithm.plan(problem.at(rank)));
  return ranks;
}

}  // namespace chorale
