#include "src/math/kernel.hpp"
#include "src/math/router.hpp"

namespace chorale {
namespace {

using namespace routing;

// The balance loss's gradient with respect to the share P of each expert, [sequences, E]; empty without a balance loss.
template <class T>
std::vector<T> balance_slopes(const RoutingRule& rule, std::int64_t tokens, const std::int32_t* chosen, double factor) {
  if (rule.balance == 0) return {};
  const std::int64_t choices = rule.sequence * rule.chosen;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tokens / rule.sequence * rule.experts));
  for (std::int64_t i = 0; i < tokens * rule.chosen; ++i)
    ++counts[static_cast<std::size_t>(i / choices * rule.experts + chosen[i])];
  const double slope = factor * rule.balance * static_cast<double>(rule.experts) / static_cast<double>(choices);
  std::vector<T> slopes;
  for (const std::int64_t count : counts) slopes.push_back(static_cast<T>(slope * static_cast<double>(count)));
  return slopes;
}

// dx ← the gradient of softmax with respect to its inputs, for the gradient `slopes` with respect to its shares. If the
// shares are σ/Σσ, then (1 − σ)·dx is the gradient with respect to the inputs of σ. `slopes` may be dx.
template <class T>
void through_shares(const T* shares, const T* slopes, std::int64_t count, T* dx) {
  T mean = 0;
  for (std::int64_t i = 0; i < count; ++i) mean += slopes[i] * shares[i];
  for (std::int64_t i = 0; i < count; ++i) dx[i] = shares[i] * (slopes[i] - mean);
}

// Gradients of one token at a time. Like Router, a thread uses one object for many tokens.
template <class T>
class RouterGradient {
 public:
  RouterGradient(const RoutingRule& rule, double factor)
      : rule_(rule),
        router_(rule),
        factor_(factor),
        shares_(static_cast<std::size_t>(rule.experts)),
        slopes_(shares_),
        weights_(static_cast<std::size_t>(rule.chosen)),
        dweights_(weights_) {}

  // `balance`: the balance slopes of the token's sequence, or null.
  void of(const T* logits, const std::int32_t* chosen, const std::int32_t* places, const T* dweights, const T* balance,
          T* dlogits) {
    const std::int64_t experts = rule_.experts, k = rule_.chosen;
    T *slopes = slopes_.data(), *dw = dweights_.data();
    router_.set_scores(logits);
    const T log_sum = softmax(logits, experts, shares_.data());
    // dlogits may overwrite the logits from here on.
    const T pull = static_cast<T>(2 * factor_ * rule_.z) * log_sum;
    for (std::int64_t e = 0; e < experts; ++e) dlogits[e] = rule_.z > 0 ? pull * shares_[static_cast<std::size_t>(e)] : 0;
    for (std::int64_t e = 0; e < experts; ++e) slopes[e] = balance ? balance[e] : 0;
    for (std::int64_t j = 0; j < k; ++j) dw[j] = places[j] < 0 ? 0 : static_cast<T>(rule_.scale) * dweights[j];
    if (rule_.score == RouterScore::softmax) {
      for (std::int64_t j = 0; j < k; ++j) slopes[chosen[j]] += dw[j];
    } else {
      add_through_weights(chosen, dlogits);
    }
    if (balance || rule_.score == RouterScore::softmax) add_through_shares(dlogits);
  }

 private:
  // Adds the gradient with respect to the chosen scores, for weights that are shares of the chosen experts only.
  void add_through_weights(const std::int32_t* chosen, T* dlogits) {
    const std::int64_t k = rule_.chosen;
    T *weights = weights_.data(), *dw = dweights_.data();
    router_.weigh(chosen, weights);
    if (sigmoid() && k == 1)
      dw[0] *= weights[0];
    else
      through_shares(weights, dw, k, dw);
    for (std::int64_t j = 0; j < k; ++j) dlogits[chosen[j]] += sigmoid() ? dw[j] * (1 - router_.scores()[chosen[j]]) : dw[j];
  }

  // Adds the gradient with respect to all scores. slopes_ is that with respect to the shares of all experts.
  void add_through_shares(T* dlogits) {
    const std::int64_t experts = rule_.experts;
    T *shares = shares_.data(), *slopes = slopes_.data();
    if (sigmoid()) divide_by_sum(router_.scores(), experts, shares);
    through_shares(shares, slopes, experts, slopes);
    for (std::int64_t e = 0; e < experts; ++e) dlogits[e] += sigmoid() ? slopes[e] * (1 - router_.scores()[e]) : slopes[e];
  }

  bool sigmoid() const { return rule_.score == RouterScore::sigmoid; }

  const RoutingRule& rule_;
  Router<T> router_;
  double factor_;
  std::vector<T> shares_, slopes_;     // of all experts
  std::vector<T> weights_, dweights_;  // of the chosen ones
};

}  // namespace

void routing_gradient(const Tensor& logits, const RoutingRule& rule, const Tensor& chosen, const Tensor& places,
                      const Tensor& dweights, double factor, const Tensor& dlogits, const Queue& queue) {
  rule.check();
  check_logits(logits, rule);
  const std::int64_t tokens = logits.dim(0), k = rule.chosen;
  const Shape choices{tokens, k};
  require(
      chosen.shape() == choices && places.shape() == choices && dweights.shape() == choices &&
          dweights.dtype() == logits.dtype() && dlogits.shape() == logits.shape() && dlogits.dtype() == logits.dtype(),
      "the gradient of {} logits {} needs choices {} and weights of that type; got chosen {}, places {}, dweights {} of {}",
      name_of(logits.dtype()), to_string(logits.shape()), to_string(choices), to_string(chosen.shape()),
      to_string(places.shape()), to_string(dweights.shape()), name_of(dweights.dtype()));
  if (skips(queue, logits, chosen, places, dweights, dlogits)) return;
  refuse_device(queue);
  const std::int32_t* experts = chosen.values<std::int32_t>().data();
  const std::int32_t* rows = places.values<std::int32_t>().data();
  visit_logits(logits, [&]<class T>(Type<T>) {
    const std::vector<T> slopes = balance_slopes<T>(rule, tokens, experts, factor);
    const T *in = logits.values<T>().data(), *above = dweights.values<T>().data();
    T* out = dlogits.values<T>().data();
    parallel_for(queue.threads, tokens, [&](std::int64_t first, std::int64_t last) {
      RouterGradient<T> gradient(rule, factor);
      for (std::int64_t t = first; t < last; ++t) {
        const T* balance = slopes.empty() ? nullptr : slopes.data() + t / rule.sequence * rule.experts;
        gradient.of(in + t * rule.experts, experts + t * k, rows + t * k, above + t * k, balance, out + t * rule.experts);
      }
    });
  });
}

}  // namespace chorale
