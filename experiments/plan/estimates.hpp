// Closed forms for the time and memory of a step. The constants of the closed forms come from two small models, with one and
// two blocks, which are planned and simulated exactly. A search (search.hpp) uses the estimates only to choose the
// candidates that it then simulates exactly.
//
//   passes    m micro-batches of (blocks of a stage) + (embedding and head)
//   bubble    as many passes as the schedule's row says: (stages − 1) / chunks for interleaved
//   messages  2 · chunks for each micro-batch, counted if they delay the micro-batch
//   sums      the ring reduction of a rank's gradients, minus the part that overlaps passes
#pragma once
#include <map>
#include <tuple>

#include "experiments/plan/search.hpp"

namespace chorale::plan {

// The cost of one micro-batch on a rank. The cost does not depend on dp and pp, except that the ranks along ep are also
// ranks along dp.
struct BlockEstimate {
  double block_seconds = 0, ends_seconds = 0;        // time of the forward and the backward pass
  double block_bytes = 0, ends_bytes = 0;            // bytes of activations
  double block_parameters = 0, ends_parameters = 0;  // parameters of this rank, without experts
  double block_experts = 0;                          // parameters of this rank's experts
};

class Estimates {
 public:
  explicit Estimates(const SearchRequest& request);
  void estimate(Found& found);  // sets `estimate` and `bytes`

 private:
  // tp, cp, ep, sp, micro-batch, recomputation
  using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, std::int64_t, Recompute>;
  const BlockEstimate& blocks_of(const Found& found);
  double experts_of_block(const Layout& layout) const;
  double seconds_of_sums(const Found& found, double parameters, double pass) const;
  double bytes_of_states(const Found& found, double parameters, double shards) const;

  const SearchRequest& request_;
  const double moments_;  // per parameter, of the optimizer's rule
  std::map<Kind, BlockEstimate> known_;
};

}  // namespace chorale::plan
