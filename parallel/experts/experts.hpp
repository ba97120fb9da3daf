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
// Dispatch and combine each take one all_to_all. The routing determines the number of rows between each pair of ranks. A
// rank without rows also makes the calls. Before dispatch, one all_gather sends the row counts of each (expert, leaf) to all
// ranks. The backward pass uses the same counts. Each row has h elements, the width of the model. With N ranks, k experts
// per token and balanced routing, a rank sends k·b·s·h·(N−1)/N elements per call.
//
// While rows return, the layer computes the shared expert in the forward pass, or weight gradients in the backward pass.
//
// Each rank has consecutive experts: rank r has experts [r·E/N, (r+1)·E/N). Ranks that differ only along edp have the same
// experts and sum the gradients of these experts. Before this sum, an expert's gradient already includes the tokens of all
// ranks along ep, because these tokens have been sent to the expert.
//
// A leaf is a fixed number of neighboring tokens (layers/context.hpp). If ranks also divide sequences, the numbers of leaves
// per rank can differ. Every list of counts is then padded with zeros to the length of the longest list.
#pragma once
#include <chorale/training.hpp>
#include "layers/expert_exchange.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/mesh/mesh.hpp"

namespace chorale {

// For each rank along ep, the positions of the rank's tokens in a sequence. Empty if all ranks have complete sequences.
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
  std::vector<Block> plain_order(const ExpertRows& here) const;  // the order in which an all_to_all delivers rows
  // Sorts rows by (local expert, source rank). The rows arrived block by block, in the order of the list.
  Tensor sorted(const Tensor& arrived, const ExpertRows& here, const std::vector<Block>& order, Context& context) const;
  static Tensor like(const Tensor& x, std::int64_t rows, Context& context);  // a tensor like x, but with `rows` rows
  // Gathers a list of integers from each rank. In a run, `numbers_of` is called for this rank only. In a plan, `numbers_of`
  // is called for all ranks.
  using NumbersOf = std::function<std::vector<std::int64_t>(std::int64_t source)>;
  std::vector<std::int64_t> of_all_ranks(const NumbersOf& numbers_of, Context& context) const;
  // The row counts [experts, leaves] of a source rank. `leaves` is the maximum number of leaves over all ranks.
  std::vector<std::int64_t> padded_counts_of(std::int64_t source, const ExpertRows& home, const Routing& routing,
                                             const Context& context) const;
  std::int64_t most_leaves(const ExpertRows& home, const Routing& routing, const Context& context) const;
  // For plans: returns the experts that the tokens of rank `source` choose in each of its sequences.
  std::vector<std::int32_t> planned_choices(std::int64_t source, const Routing& routing) const;
  // The numbers of rows that this rank's experts receive. `all` holds one list from each rank, one after another. The lists
  // have equal length, and each list begins with the row counts of its rank.
  ExpertRows rows_here(const std::vector<std::int64_t>& all, std::int64_t experts, std::int64_t leaves) const;

  Axis& axis_;

 private:
  const bool overlaps_;
  const PlacesOfSources places_;
};

// Dispatch by host (experts_by_host.cpp).
std::unique_ptr<ExpertParallel> experts_by_host(Axis& axis, bool overlaps = true, PlacesOfSources places = {});

// `cut` states how context-parallel ranks divide sequences; if it is null, every rank has complete sequences.
std::unique_ptr<ExpertExchange> exchange_of(const Mesh& mesh, const ExchangeOptions& options = {},
                                            const TokenCut* cut = nullptr);

}  // namespace chorale
