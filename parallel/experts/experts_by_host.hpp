// Dispatch by host: a token that has experts on another host travels there once, however many of them it has. A rank of
// that host, the lane, spreads it to the ranks of its experts. Links between hosts are slower than those within a host, and
// tokens often have several experts on a host.
//
//   source                     lane on the experts' host                 rank of the experts
//   x of its tokens ─ across ─▶ x of many sources' tokens ─┐
//   x of its own tokens, with experts on its own host ─────┴─ within ─▶ rows sorted by (own expert, source rank, token)
//
// Each source has one lane per host: the rank with its own index on its host, modulo the number of ranks there. So the rows
// of a source arrive in the order of their tokens, and the counts of all ranks say where each row goes. Only a list of its
// experts travels with a token, once per forward pass. In the backward pass the lane multiplies by the weights, which travel
// with dy: by the same kernel and in the same type as at the source, so no bit differs.
//
// Combining is that of ExpertParallel: a sum on the other host would round differently. With g hosts of as many experts,
// k experts per token and uniformly random routing, a token travels to D(g) = g·(1 − C(E−E/g, k)/C(E, k)) hosts, its own
// included. Between hosts a dispatch sends D(g)/k of the bytes of a plain one, and k more numbers per token.
#pragma once
#include "parallel/experts/experts.hpp"

namespace chorale {

// The way of the tokens of one micro-batch, as seen by one rank. Tables of places: see take_rows (src/math/slots.hpp).
struct WayByHost {
  RowsBetween across, within;
  std::vector<std::int32_t> leaving;  // [tokens, hosts]: places of this rank's tokens among the rows that leave its host
  std::vector<std::int32_t> own;      // [tokens, k]: places of this rank's tokens among the rows that it spreads
  std::vector<std::int32_t> landed;   // [rows that arrive from other hosts, k]: their places among the rows that it spreads
};

class ExpertsByHost final : public ExpertParallel {
 public:
  explicit ExpertsByHost(Axis& axis, bool overlaps = true, PlacesOfSources places = {});
  ExpertRows here(const ExpertRows& home, const Routing& routing, Context& context) const override;
  Tensor dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows& home,
                  const ExpertRows& here, Context& context) const override;

 private:
  // The experts [tokens, k] that get a row of each of a rank's tokens; −1 where the choice was dropped. Of other ranks, only
  // a plan knows them.
  std::vector<std::int32_t> experts_of_tokens(std::int64_t source, const Routing& routing, const Context& context) const;
  // Whether each token has some of its k experts on each host, [tokens, hosts]; a rank has `each` experts.
  std::vector<char> hosts_of_tokens(const std::vector<std::int32_t>& experts, std::int64_t k, std::int64_t each) const;
  // Every rank tells all others these numbers: its counts, and how many of its tokens have experts on each host.
  std::vector<std::int64_t> numbers_of(std::int64_t source, const ExpertRows& home, const Routing& routing,
                                       const Context& context) const;
  std::size_t host_of(std::int64_t rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  std::int64_t lane(std::int64_t source, std::size_t host) const;  // the source itself on its own host
  std::vector<std::int64_t> sources_of(std::int64_t rank) const;   // those whose lane on its host it is, itself included

  std::vector<std::size_t> host_of_, index_;         // by rank: its host, and its index there
  std::vector<std::vector<std::int64_t>> ranks_of_;  // by host
};

}  // namespace chorale
