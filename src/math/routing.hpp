// The router of a mixture of experts (Shazeer et al. 2017). The router decides which k of E experts each token uses, and
// with which weights.
//
//   logits [T,E] ─ scores ─ best k ─ weights ─ drops ─▶ chosen, weights, places [T,k]       slots.hpp copies the rows
//
//   T = 4, E = 3, k = 2       chosen    places       rows: sorted by (expert, token)
//      token 0                 0 2       0 4         row 0: token 0 of expert 0
//      token 1                 1 2       2 5         row 1: token 2 of expert 0
//      token 2                 0 1       1 3         row 2: token 1 of expert 1 …
//      token 3                 1 2      −1 6         expert 1 takes only 2 tokens, so it dropped token 3
//
// The definition is independent of the layout and the micro-batches. The choices of a token depend only on its own logits.
// Drops and the balance loss depend on the token's sequence.
//
//   score of expert e                                 weight of a chosen expert
//   softmax_of_chosen   l_e                           softmax over the k chosen logits: Mixtral. Qwen3-MoE divides a softmax
//                                                     over all experts by its sum over the chosen ones: the same value
//   softmax             softmax over all E logits     the score
//   sigmoid             σ(l_e)                        the score divided by the sum of the k chosen scores: DeepSeek-V3
//
// A token chooses the k experts with the highest scores; if scores are equal, it chooses the expert with the smaller index.
// NaN counts as the highest score, so a NaN logit reaches the weights. `scale` multiplies all weights. A token's experts are
// listed in ascending order. For k = 1, a sigmoid score is not divided by the sum of the chosen scores. For k = 1, the
// weight by softmax_of_chosen is always 1, so only the two losses below train the router.
//
// Bias (DeepSeek-V3): a token chooses by score + bias, both for experts and for groups. The weights depend only on the
// scores, and the biases get no gradient.
//
// Groups (DeepSeek-V3): neighboring experts form groups. A group's score is the sum of its best k / groups_chosen scores. A
// token chooses only among the experts of its best `groups_chosen` groups.
//
// Capacity: an expert takes at most C = ⌈capacity·k·s/E⌉ tokens of a sequence of s tokens. The expert drops the tokens with
// the lowest scores; if scores are equal, it drops the later token. With softmax_of_chosen, a full expert ranks tokens by
// the softmax over all experts. The logits cannot be used, because logits of different tokens are not comparable. The
// weights cannot be used either, because all of them are 1 for k = 1. A dropped choice has the weight 0 and no row.
//
// Two losses are added to the step's summed loss, before this sum is divided by the step's number of tokens:
//
//   balance · s · E · Σ_e f_e·P_e     per sequence. f_e: the fraction of the k·s choices for expert e, before drops, and
//                                     without a gradient. P_e: mean over tokens of softmax(l)_e; for sigmoid of σ(l_e)/Σσ(l)
//                                     With `counts`, f_e is computed from these counts instead, which can be the counts of
//                                     the previous step. Before the first step, the counts are zeros. All f_e are then 1/E,
//                                     and the loss is constant and has no gradient
//   z · log²(Σ_e exp(l_e))            per token (Zoph et al. 2022)
//
// Logits, weights and their gradients are f32 (f64 in tests that compute in f64). The cost per token is E exponentials and a
// partial sort of E scores.
#pragma once
#include <span>
#include <vector>

#include "src/math/leaves.hpp"
#include "src/math/queue.hpp"

namespace chorale {

enum class RouterScore : std::uint8_t { softmax_of_chosen, softmax, sigmoid };

struct RoutingRule {
  std::int64_t experts = 1, chosen = 1;  // E, k
  RouterScore score = RouterScore::softmax_of_chosen;
  double scale = 1;
  std::int64_t groups = 1, groups_chosen = 1;
  double capacity = 0;        // the capacity factor, or 0 if no choice is dropped
  std::int64_t sequence = 1;  // s
  double balance = 0, z = 0;  // coefficients of the two losses
  Tensor bias = {};           // f32 [E]: added to the scores when experts are chosen; empty if there is no bias
  // i64 [n,E]: the number of choices of each expert in each of n equal parts of the tokens. f_e is computed from these
  // numbers. If the tensor is empty, f_e is computed from the choices in the tokens' own sequences.
  Tensor counts = {};

  void check() const;                   // throws a usage error for impossible values
  std::int64_t most_of_expert() const;  // C, the largest number of rows that one expert gets from one sequence. Without a
                                        // capacity, C is s
  // The largest number of rows that any `own` experts together can get from `of_each` tokens of each sequence. At least one
  // routing reaches this number. Without a capacity, every routing gives exactly this number of rows to all E experts
  // together.
  std::int64_t most_rows(std::int64_t sequences, std::int64_t of_each, std::int64_t own) const;
};

// The routing of the T tokens of a micro-batch. A leaf is a fixed number of consecutive tokens of a sequence.
struct Routing {
  Tensor chosen;                      // i32 [T,k]: experts, in ascending order for each token
  Tensor weights;                     // [T,k] in the type of the logits; 0 for a dropped choice
  Tensor places;                      // i32 [T,k]: the row in the list sorted by (expert, token); −1 for a dropped choice
  std::vector<std::int64_t> counts;   // [E, leaves]: the number of rows that each expert gets from each leaf
  std::vector<std::int64_t> dropped;  // [E]: the number of dropped choices of each expert
  // In a plan: the experts [s,k] of the tokens of every sequence, with −1 for a dropped choice. Otherwise empty.
  std::vector<std::int32_t> planned = {};
};

// Routes the tokens. Allocates the tensors in `memory` as activations; their sizes depend only on T and k. With a capacity
// or a balance loss, the tokens must form complete sequences. `forced` lists the experts [s,k] of each position
// (forced_routing.hpp). If it is empty, the router chooses. In a plan (phantom logits), the tokens must form complete
// sequences that consist of complete leaves. In a plan, the counts are the counts of `forced`, or of a balanced routing if
// the router would choose.
Routing route(const Tensor& logits, const RoutingRule& rule, const Leaves& leaves, Allocator& memory, const Queue& queue,
              std::span<const std::int32_t> forced = {});

// The first half of route(), which makes all choices. An element of `places` is then −1 for a dropped choice, and otherwise
// 0.
Routing choose_experts(const Tensor& logits, const RoutingRule& rule, Allocator& memory, const Queue& queue,
                       std::span<const std::int32_t> forced = {});
// The second half of route(), which also works on a subset of the tokens. number_rows() counts the drops that are marked in
// `places`, and numbers the rows of all other choices.
void number_rows(const RoutingRule& rule, const Leaves& leaves, Routing& routing, const Queue& queue);

// Sets `counts` [n,E] (i64) to the number of choices of each expert in each of n equal parts of the tokens, before drops.
void count_choices(const Tensor& chosen, const Tensor& counts, const Queue& queue);

// Computes the gradient of the loss with respect to the logits. `dweights` [T,k] is the gradient with respect to the
// weights; its elements for dropped choices are ignored. `factor` multiplies the gradients of the two losses. `dlogits` can
// be the same tensor as `logits`.
void routing_gradient(const Tensor& logits, const RoutingRule& rule, const Tensor& chosen, const Tensor& places,
                      const Tensor& dweights, double factor, const Tensor& dlogits, const Queue& queue);

// Returns the counts [E, leaves] for one sequence with these choices [s,k], assuming that a full expert drops the later
// tokens. In a run, the scores can determine different drops, but the number of drops per expert and sequence is the same.
std::vector<std::int64_t> counts_of(std::span<const std::int32_t> choices, const RoutingRule& rule, const Leaves& leaves);

// Returns the experts [s,k] that a plan assumes for the tokens of every sequence: `forced`, or a balanced routing if
// `forced` is empty. Dropped choices are −1.
std::vector<std::int32_t> planned_choices(const RoutingRule& rule, std::span<const std::int32_t> forced);

// Returns the counts [E, leaves] for samples that all have these choices [t,k], where −1 marks a drop.
std::vector<std::int64_t> counts_of_samples(std::int64_t samples, std::span<const std::int32_t> choices,
                                            const RoutingRule& rule, const Leaves& leaves);
// Returns the given rows of choices [s,k].
std::vector<std::int32_t> choices_at(std::span<const std::int32_t> choices, std::span<const std::int64_t> rows,
                                     std::int64_t chosen);

}  // namespace chorale
