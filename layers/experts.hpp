// A mixture of experts (Shazeer et al. 2017) in place of a dense MLP. For each token, a router chooses k of E small MLPs:
//
//   y_t = Σ over the chosen experts e, in ascending order, of weight_te · expert_e(x_t)  +  shared(x_t)
//
//   x ─┬─ router ─ choices, weights ────────────────────────┐
//      ├─ rows by (expert, token) ─ up ─ act ─ down ─ rows ─┴─ weighted sum of a token's k rows ─ + ── y
//      └─ shared expert, an ordinary MLP ──────────────────────────────────────────────────────── ┘
//
// All k expert outputs of a token are computed before they are summed, so y does not depend on how rows are divided among
// ranks. Tensor parallelism splits every expert like a dense MLP: `up` by columns and `down` by rows. Every tensor rank
// routes all tokens of the micro-batch. The ranks' copies of x are bit-identical, and choice_counts.hpp checks that all
// tensor ranks choose the same experts. ExpertExchange sends each row to the rank that has the row's expert.
//
// The tape keeps x, the logits and choices, the input and output of the activation function, and the experts' outputs. The
// backward pass gathers the rows of x again. Per token, the layer multiplies by k experts of width f, which takes 2·k·(gates
// + 1)·h·f flops in the forward pass. The layer sums k rows per token over the tensor ranks, whereas a dense MLP sums one
// row per token.
//
// Exact numerics adds up an expert's weight gradient leaf by leaf (Context::leaves). An expert's rows from one leaf form one
// addend.
#pragma once
#include <chorale/model.hpp>
#include "layers/expert_mlps.hpp"
#include "layers/sequence.hpp"
#include "layers/token_routing.hpp"

namespace chorale {

struct RoutingRule;
RoutingRule rule_of(const ModelShape& shape);  // the routing rule of a block with experts

class MixtureOfExperts final : public Layer {
 public:
  // `block` is the block's index in the model. `width` is this rank's shard of every expert, and `experts` are the experts
  // of this rank. `deviation` is the standard deviation of the initial values of `down`. `shared` is null if there is no
  // shared expert.
  MixtureOfExperts(std::string name, std::int64_t block, const ModelShape& shape, const Sharding& width,
                   const Sharding& experts, double deviation, std::unique_ptr<Sequence> shared);

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  // The row counts of this rank's tokens, and the row counts of this rank's experts.
  struct Counts {
    ExpertRows home, here;
  };
  struct Routed {
    Tensor logits;
    Routing routing;
    Tensor of_sequences;  // TokenRouting::counts
    Counts counts;
  };

  Routed routed(const Tensor& x, Context& context);
  std::int64_t most_rows_here(std::int64_t samples, const Context& context) const;
  bool knows_rows_here(const Context& context) const;
  RoutingRule rule(const Context& context) const;  // the routing rule of the layer, with the balance state of earlier steps
  void count(const Routing& routing, const ExpertRows& home, ChoiceCounts& choices) const;
  std::function<Tensor()> start_sum(const Tensor& partial, const Tensor& places, const Counts& counts, SumSite& site,
                                    Context& context) const;
  void add_weight_gradients(const Tensor& x, const Tensor& places, const Counts& counts, const Tensor& after,
                            const Tensor& doutputs, const Tensor& dbefore, const Tensor& dlogits, Context& context);
  Tensor from_logits(const Tensor& dlogits, Context& context) const;
  static Tensor rows_here(const Tensor& all, const Context& context);  // this rank's rows of the residual stream
  void each_own_parameter(const std::function<void(const ParameterPointer&)>& visit) const;  // excludes the shared expert

  std::int64_t number_;  // this block's index among the model's blocks that have experts
  RoutingRule rule_;
  std::vector<std::int32_t> forced_;  // [s,k]: the forced experts of each position in a sequence; empty if the router
                                      // chooses
  std::int64_t width_;
  ParameterPointer router_;
  ExpertMlps experts_;  // this rank's experts
  std::unique_ptr<Sequence> shared_;
};

}  // namespace chorale
