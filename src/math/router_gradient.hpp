// Gradients for single tokens, for the host and for devices (router.hpp).
//
//   dweights ─┬─ softmax: slopes of the chosen shares ──────────┐
//             └─ other scores: through the weights ─────┐       ├─ through the shares of all experts ─┐
//   balance loss: a slope for every share ──────────────┼───────┘                                     │
//   z-loss: 2·z·log Σ exp(l)·softmax(l) ────────────────┴─────────────────────────────────────────────┴─ + ── dlogits
#pragma once
#include "src/math/router.hpp"

namespace chorale::routing {

// Sets `dx` to the gradient with respect to the inputs of a softmax. `slopes` is the gradient with respect to the outputs
// (shares) of the softmax. If the shares are σ/Σσ, then (1 − σ)·dx is the gradient with respect to the inputs of σ. `slopes`
// can be the same array as `dx`.
template <class Team, class T>
constexpr void through_shares(Team team, const T* shares, const T* slopes, std::int64_t count, T* dx) {
  T mean = 0;
  for (std::int64_t i = 0; i < count; ++i) mean += slopes[i] * shares[i];
  team.sync();
  each(team, count, [&](std::int64_t i) { dx[i] = shares[i] * (slopes[i] - mean); });
  team.sync();
}

// The gradient of the loss with respect to a token's logits; see routing_gradient. `counts` holds the number of choices of
// each expert, which determines f_e (RoutingRule::counts). It is null if there is no balance loss.
template <class Team, class T>
class TokenGradient {
 public:
  constexpr TokenGradient(Team team, const TokenRule& rule, const Room<T>& room, double factor)
      : team_(team), rule_(rule), room_(room), factor_(factor), sigmoid_(rule.score == RouterScore::sigmoid) {}

  constexpr void of(const T* logits, const std::int32_t* chosen, const std::int32_t* places, const T* dweights,
                    const std::int64_t* counts, T* dlogits) const {
    const std::int64_t experts = rule_.experts, k = rule_.chosen;
    T *slopes = room_.slopes, *dw = room_.dweights;
    set_scores(team_, rule_, logits, room_.scores);
    const T log_sum = softmax(team_, logits, experts, room_.shares);
    // The logits are not read after this line, so `dlogits` can overwrite them.
    const T pull = static_cast<T>(2 * factor_ * rule_.z) * log_sum;
    each(team_, experts, [&](std::int64_t e) { dlogits[e] = rule_.z > 0 ? pull * room_.shares[e] : 0; });
    const bool balances = set_balance_slopes(counts);
    each(team_, k, [&](std::int64_t j) { dw[j] = places[j] < 0 ? 0 : static_cast<T>(rule_.scale) * dweights[j]; });
    team_.sync();
    if (rule_.score == RouterScore::softmax)
      each(team_, k, [&](std::int64_t j) { slopes[chosen[j]] += dw[j]; });
    else
      add_through_weights(chosen, dlogits);
    team_.sync();
    if (balances || rule_.score == RouterScore::softmax) add_through_shares(dlogits);
  }

 private:
  // Sets `slopes` to the balance loss's gradient with respect to the share P of each expert. Returns false if that gradient
  // is zero. The gradient is zero without a balance loss, and in the first step, in which the counts of the previous step
  // are zeros.
  constexpr bool set_balance_slopes(const std::int64_t* counts) const {
    std::int64_t choices = 0;
    for (std::int64_t e = 0; counts && e < rule_.experts; ++e) choices += counts[e];
    const bool some = choices > 0;
    const double slope =
        some ? factor_ * rule_.balance * static_cast<double>(rule_.experts) / static_cast<double>(choices) : 0;
    each(team_, rule_.experts,
         [&](std::int64_t e) { room_.slopes[e] = some ? static_cast<T>(slope * static_cast<double>(counts[e])) : 0; });
    return some;
  }

  // Adds the gradient with respect to the chosen scores, if the weights are shares of the chosen experts only.
  constexpr void add_through_weights(const std::int32_t* chosen, T* dlogits) const {
    const std::int64_t k = rule_.chosen;
    T *weights = room_.weights, *dw = room_.dweights;
    weigh(team_, rule_, room_.scores, chosen, weights);
    if (sigmoid_ && k == 1)
      each(team_, k, [&](std::int64_t j) { dw[j] *= weights[j]; });
    else
      through_shares(team_, weights, dw, k, dw);
    team_.sync();
    each(team_, k, [&](std::int64_t j) { dlogits[chosen[j]] += through_score(dw[j], chosen[j]); });
  }

  // Adds the gradient with respect to all scores. `slopes` is the gradient with respect to the shares of all experts.
  constexpr void add_through_shares(T* dlogits) const {
    const std::int64_t experts = rule_.experts;
    if (sigmoid_) divide_by_sum(team_, room_.scores, experts, room_.shares);
    through_shares(team_, room_.shares, room_.slopes, experts, room_.slopes);
    each(team_, experts, [&](std::int64_t e) { dlogits[e] += through_score(room_.slopes[e], e); });
  }

  constexpr T through_score(T slope, std::int64_t expert) const {
    return sigmoid_ ? slope * (1 - room_.scores[expert]) : slope;
  }

  Team team_;
  const TokenRule& rule_;
  const Room<T>& room_;
  double factor_;
  bool sigmoid_;
};

}  // namespace chorale::routing
