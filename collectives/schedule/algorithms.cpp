#include <chorale/algorithm.hpp>

namespace chorale {

// Each folder of collectives/ has one file for each of its algorithms.
using PlanFunction = Schedule(const Problem&);
namespace all_reduce {
PlanFunction ring, binomial_tree, recursive_doubling, rabenseifner, circulant, direct, one_shot, double_binary_tree,
    hierarchical;
}  // namespace all_reduce
namespace reduce_scatter {
PlanFunction ring, recursive_halving, circulant, direct, pairwise, hierarchical;
}  // namespace reduce_scatter
namespace all_gather {
PlanFunction ring, recursive_doubling, bruck, circulant, direct, hierarchical;
}  // namespace all_gather
namespace broadcast {
PlanFunction direct, binomial_tree, scatter_all_gather, chain, double_tree, hierarchical;
}  // namespace broadcast
namespace reduce {
PlanFunction direct, binomial_tree, reduce_scatter_gather, chain, double_tree, hierarchical;
}  // namespace reduce
namespace gather {
PlanFunction binomial_tree, direct;
}  // namespace gather
namespace scatter {
PlanFunction binomial_tree, direct;
}  // namespace scatter
namespace all_to_all {
PlanFunction pairwise, bruck, direct, hierarchical;
bool equal_blocks(const Problem&);
}  // namespace all_to_all
namespace barrier {
PlanFunction dissemination;
}  // namespace barrier

const std::vector<Algorithm>& all_algorithms() {
  using enum Collective;
  static const std::vector<Algorithm> table{
      {all_reduce, "ring", all_reduce::ring, "a ring reduce-scatter, then a ring all-gather; only neighbors communicate"},
      {all_reduce, "binomial_tree", all_reduce::binomial_tree, "a reduce to rank 0, then a broadcast; ⌈log₂ p⌉ rounds each"},
      {all_reduce, "recursive_doubling", all_reduce::recursive_doubling,
       "in round k, pairs of ranks at distance 2^k exchange whole vectors and add them"},
      {all_reduce, "rabenseifner", all_reduce::rabenseifner,
       "pairs of ranks at distances …, 4, 2, 1 exchange halves and add them; then the reverse"},
      {all_reduce, "circulant", all_reduce::circulant,
       "halving for any number of ranks: each sends p/2, then p/4, … ranks ahead; then the reverse"},
      {all_reduce, "direct", all_reduce::direct, "each rank sums its own block, then sends it to all"},
      {all_reduce, "one_shot", all_reduce::one_shot, "each rank sends everything to all and sums in rank order"},
      {all_reduce, "double_binary_tree", all_reduce::double_binary_tree,
       "each half of the vector goes up and down its own tree"},
      {all_reduce, "hierarchical", all_reduce::hierarchical,
       "sums on each host, an all-reduce between hosts, then gathers on each host"},
      {reduce_scatter, "ring", reduce_scatter::ring, "partial sums travel once around the ring"},
      {reduce_scatter, "recursive_halving", reduce_scatter::recursive_halving,
       "pairs of ranks at distances …, 4, 2, 1 exchange halves and add them"},
      {reduce_scatter, "circulant", reduce_scatter::circulant,
       "halving for any number of ranks: each sends p/2, then p/4, … ranks ahead"},
      {reduce_scatter, "direct", reduce_scatter::direct, "each rank receives its block from all and sums it"},
      {reduce_scatter, "pairwise", reduce_scatter::pairwise, "in round k, each rank sends one block k ranks ahead"},
      {reduce_scatter, "hierarchical", reduce_scatter::hierarchical,
       "sums on each host, then a reduce-scatter between hosts"},
      {all_gather, "ring", all_gather::ring, "blocks travel once around the ring"},
      {all_gather, "recursive_doubling", all_gather::recursive_doubling,
       "in round k, pairs of ranks at distance 2^k exchange all their blocks", power_of_two_ranks},
      {all_gather, "bruck", all_gather::bruck,
       "at distances d = 1, 2, 4, …, each rank sends up to d blocks to the rank d behind"},
      {all_gather, "circulant", all_gather::circulant, "the circulant reduce-scatter in reverse"},
      {all_gather, "direct", all_gather::direct, "each rank sends its block to all"},
      {all_gather, "hierarchical", all_gather::hierarchical, "an all-gather between hosts, then gathers on each host"},
      {broadcast, "direct", broadcast::direct, "the root sends everything to all"},
      {broadcast, "binomial_tree", broadcast::binomial_tree,
       "every rank that has received the vector sends it on; ⌈log₂ p⌉ rounds"},
      {broadcast, "scatter_all_gather", broadcast::scatter_all_gather, "a binomial scatter, then a ring all-gather"},
      {broadcast, "chain", broadcast::chain, "each rank sends the vector to the next rank; use it with chunks"},
      {broadcast, "double_tree", broadcast::double_tree, "each half of the vector goes down its own tree"},
      {broadcast, "hierarchical", broadcast::hierarchical,
       "each host gets a part of the vector, and the hosts exchange their parts"},
      {reduce, "direct", reduce::direct, "each rank sums its own block and sends it to the root"},
      {reduce, "binomial_tree", reduce::binomial_tree, "the binomial broadcast in reverse"},
      {reduce, "reduce_scatter_gather", reduce::reduce_scatter_gather, "a circulant reduce-scatter, then a binomial gather"},
      {reduce, "chain", reduce::chain, "each rank adds its vector and sends the sum toward the root; use it with chunks"},
      {reduce, "double_tree", reduce::double_tree, "each half of the vector goes up its own tree"},
      {reduce, "hierarchical", reduce::hierarchical, "the hierarchical broadcast in reverse"},
      {gather, "binomial_tree", gather::binomial_tree,
       "each rank collects the blocks of its subtree and sends them to its parent"},
      {gather, "direct", gather::direct, "all ranks send to the root"},
      {scatter, "binomial_tree", scatter::binomial_tree,
       "each rank sends its children the blocks of their subtrees, the most distant child first"},
      {scatter, "direct", scatter::direct, "the root sends to all ranks"},
      {all_to_all, "pairwise", all_to_all::pairwise, "in round k, each rank sends one block k ranks ahead"},
      {all_to_all, "bruck", all_to_all::bruck,
       "in round k, each rank sends 2^k ranks ahead, many blocks in one message; equal blocks only",
       all_to_all::equal_blocks},
      {all_to_all, "direct", all_to_all::direct, "all ranks send to all at once"},
      {all_to_all, "hierarchical", all_to_all::hierarchical,
       "one message from each host to each rank of another host; equal blocks only", all_to_all::equal_blocks},
      {barrier, "dissemination", barrier::dissemination, "in round k, each rank signals the rank 2^k ahead"},
      // A barrier is an all-reduce of one element.
      {barrier, "binomial_tree", all_reduce::binomial_tree, "arrivals go up a tree, the release comes down"},
      {barrier, "direct", all_reduce::one_shot, "each rank signals all others"},
  };
  return table;
}

const Algorithm* find_algorithm(Collective what, const std::string& name) {
  for (const Algorithm& algorithm : all_algorithms())
    if (algorithm.what == what && algorithm.name == name) return &algorithm;
  return nullptr;
}

std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const std::vector<Problem>& problems) {
  std::vector<Schedule> ranks;
  ranks.reserve(problems.size());
  for (const Problem& problem : problems) ranks.push_back(algorithm.plan(problem));
  return ranks;
}

std::vector<Schedule> plan_all_ranks(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Problem> problems;
  for (int rank = 0; rank < problem.size; ++rank) problems.push_back(problem.at(rank));
  return plan_all_ranks(algorithm, problems);
}

}  // namespace chorale
