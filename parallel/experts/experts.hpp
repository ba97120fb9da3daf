// Expert parallelism (Lepikhin et al. 2021, GShard): the ranks along ep are replicas that divide the experts of each expert
// layer. Every rank routes the tokens of its own micro-batch. Each row is then sent to the rank that has its expert, and the
// expert's output is sent back.
//
//   rank 0: tokens ─ routing ─┬─ rows for experts 0, 1 ─▶ │ rank 0: experts 0, 1 │ ─┬─▶ outputs of rank 0's tokens
//                             └───────────┐   ┌─────────▶ │                      │  └──────┐
//                                       dispatch                                       combine
//                             ┌───────────┘   └─────────▶ │                      │  ┌──────┘
//   rank 1: tokens ─ routing ─┴─ rows for experts 2, 3 ─▶ │ rank 1: experts 2, 3 │ ─┴─▶ outputs of rank 1's tokens
//
// dispatch and combine are one all_to_all each. The routing determines the number of rows between each pair of ranks, and a
// rank without rows also makes the calls. Before dispatch, one all_gather sends the row counts of each (expert, leaf) to all
// ranks. The backward pass uses the same counts. Each row that leaves a rank has h elements, the width of the model. With N
// ranks, k experts per token and balanced routing, a rank sends k·b·s·h·(N−1)/N elements per call.
//
// While rows return, the layer computes the shared expert in the forward pass, or weight gradients in the backward pass.
//
// Each rank has consecutive experts: rank r has experts [r·E/N, (r+1)·E/N). Ranks that differ only along edp have the same
// experts and sum their gradients. Such a gradient is a sum over the tokens of all ranks, including other ep ranks, because
// their tokens have been sent to the experts.
//
// If ranks also divide sequences, they may have unequal numbers of leaves. Every list of counts is then padded to the length
// of the longest list. Leaves that a rank does not have get counts of zero.
#pragma once
#include <chorale/named.hpp>
#include "layers/expert_exchange.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/mesh/mesh.hpp"

namespace chorale {

class Options;

// For each rank along ep, the positions of its tokens in a sequence. Empty if ranks do not divide sequences.
using PlacesOfSources = std::vector<std::vector<std::int64_t>>;

class ExpertParallel : public ExpertExchange {
 public:
  explicit ExpertParallel(Axis& axis, bool overlaps = true, PlacesOfSources places = {})
      : axis_(axis), overlaps_(overlaps), places_(std::move(places)) {}
  ExpertRows here(const ExpertRows& home, const Routing& routing, Context& context) const override;
  Tensor dispatch(const Tensor& x, const Tensor* weights, const Tensor& places, const ExpertRows& home,
                  const ExpertRows& here, Context& context) const override;
  std::function<Tensor()> start_combine(const Tensor& rows, const ExpertRows& home, const ExpertRows& here,
                                        Context& context) const override;

 protected:
  // Consecutive rows of one source rank for one of this rank's experts.
  struct Block {
    std::int64_t source, expert;
  };
  std::vector<Block> plain_order(const ExpertRows& here) const;  // the order in which the rows of an all_to_all arrive
  // Sorts rows that arrived in this order of blocks by (own expert, source rank).
  Tensor sorted(const Tensor& arrived, const ExpertRows& here, const std::vector<Block>& order, Context& context) const;
  static Tensor like(const Tensor& x, std::int64_t rows, Context& context);  // a tensor like x with a different row count
  // Gathers a list of integers from each rank. `numbers_of` is called for this rank only; a plan calls it for all ranks.
  using NumbersOf = std::function<std::vector<std::int64_t>(std::int64_t source)>;
  std::vector<std::int64_t> of_all_ranks(const NumbersOf& numbers_of, Context& context) const;
  // The counts [experts, leaves] of a source rank. `leaves` is the largest number of leaves of any rank.
  std::vector<std::int64_t> padded_counts_of(std::int64_t source, const ExpertRows& home, const Routing& routing,
                                             const Context& context) const;
  std::int64_t most_leaves(const ExpertRows& home, const Routing& routing, const Context& context) const;
  // In a plan, the experts that a rank's tokens choose in each of its sequences.
  std::vector<std::int32_t> planned_choices(std::int64_t source, const Routing& routing) const;
  // The rows that this rank's experts get. `all`: one list from each rank, all of equal length. Each list begins with the
  // counts of its rank.
  ExpertRows rows_here(const std::vector<std::int64_t>& all, std::int64_t experts, std::int64_t leaves) const;

  Axis& axis_;

 private:
  const bool overlaps_;
  const PlacesOfSources places_;
};

// plain: a token is sent once for each of its experts. by_host: a token is sent at most once to each other host, even if
// several of its experts are on that host (experts_by_host.hpp).
enum class Dispatch : std::uint8_t { plain, by_host };
constexpr auto names_of(Dispatch) { return Names{"dispatch", "plain", "by-host"}; }
// overlapped: while rows return from the experts, the layer computes. blocking: the layer waits, for comparison.
enum class Combine : std::uint8_t { overlapped, blocking };
constexpr auto names_of(Combine) { return Names{"combine", "overlapped", "blocking"}; }

struct ExchangeOptions {
  Dispatch dispatch = Dispatch::plain;
  Combine combine = Combine::overlapped;
  void declare(Options& options);
};

// `cut`: how context-parallel ranks divide sequences; null: ranks do not divide sequences.
std::unique_ptr<ExpertExchange> exchange_of(const Mesh& mesh, const ExchangeOptions& options = {},
                                            const TokenCut* cut = nullptr);

}  // namespace chorale
