// With dispatch by host, a token is sent at most once to each other host, even if several of its experts are on that host.
// One rank of that host, called the lane, forwards the token to the ranks that have its experts. Dispatch by host is useful
// if links between hosts are slower than links within a host and tokens often have several experts on one host.
//
//   source                     lane on the experts' host                 rank of the experts
//   x of its tokens ─ across ─▶ x of many sources' tokens ─┐
//   x of its own tokens, with experts on its own host ─────┴─ within ─▶ rows sorted by (local expert, source rank, token)
//
// Each source rank has one lane per host. If a source rank has index i on its own host, its lane has index i on the other
// host, modulo the number of ranks there. So the rows of a source rank arrive in token order, and the counts of all ranks
// determine the destination of each row. The only additional data are a list of experts for each token, sent once per
// forward pass. In the backward pass, the routing weights are sent together with dy, and the lane multiplies dy by these
// weights. The lane uses the same kernel and type as the source rank would, so results are bit-identical to a plain
// dispatch.
//
// Combine is the same as in ExpertParallel, because partial sums on the experts' host would round differently. With g hosts
// that have equally many experts, k experts per token and uniformly random routing, a token is sent to D(g) = g·(1 −
// C(E−E/g, k)/C(E, k)) hosts, including its own. Between hosts, a dispatch sends D(g)/k of the bytes of a plain dispatch. In
// addition, it sends k integers with each token.
#pragma once
#include "parallel/experts/experts.hpp"

namespace chorale {

// The route of one micro-batch's tokens, from the view of one rank. In the three tables, each entry is a row index, or −1;
// take_rows (src/math/slots.hpp) takes such a table as its argument `places`.
struct WayByHost {
  RowsBetween across, within;
  std::vector<std::int32_t> leaving;  // [tokens, hosts]: the row of each of this rank's tokens, among the rows sent to other
                                      // hosts
  std::vector<std::int32_t> own;      // [tokens, k]: the row of each of this rank's tokens, among the rows that this rank
                                      // forwards
  std::vector<std::int32_t> landed;   // [rows from other hosts, k]: the row of each received token, among the rows that this
                                      // rank forwards
};

class ExpertsByHost final : public ExpertParallel {
 public:
  explicit ExpertsByHost(Axis& axis, bool overlaps = true, PlacesOfSources places = {});
  ExpertRows here(const ExpertRows& home, const Routing& routing, Context& context) const override;
  Tensor dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows& home,
                  const ExpertRows& here, Context& context) const override;

 private:
  // The experts [tokens, k] of a rank's tokens; −1 for a dropped choice. The experts of other ranks' tokens are known only
  // in a plan.
  std::vector<std::int32_t> experts_of_tokens(std::int64_t source, const Routing& routing, const Context& context) const;
  // Returns a table [tokens, hosts] that states whether the host has any of the token's k experts. `each` is the number of
  // experts per rank.
  std::vector<char> hosts_of_tokens(const std::vector<std::int32_t>& experts, std::int64_t k, std::int64_t each) const;
  // The integers that a rank sends to all other ranks: its row counts and, for each host, the number of its tokens that have
  // experts on the host.
  std::vector<std::int64_t> numbers_of(std::int64_t source, const ExpertRows& home, const Routing& routing,
                                       const Context& context) const;
  std::size_t host_of(std::int64_t rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  std::int64_t lane(std::int64_t source, std::size_t host) const;  // returns `source` if `host` is its own host
  std::vector<std::int64_t> sources_of(std::int64_t rank) const;   // source ranks whose lane is this rank, including this
                                                                   // rank itself

  std::vector<std::size_t> host_of_, index_;         // for each rank: its host, and its index on that host
  std::vector<std::vector<std::int64_t>> ranks_of_;  // the ranks of each host
};

}  // namespace chorale
