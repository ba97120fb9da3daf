// Scores, choices and weights of single tokens, for routing.cpp and routing_gradient.cpp. T is float or double. All sums run
// in ascending order.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/math/routing.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::routing {

inline float exponential(float x) { return math::exp(x); }
inline double exponential(double x) { return std::exp(x); }
inline float natural_log(float x) { return math::log(x); }
inline double natural_log(double x) { return std::log(x); }

// shares ← softmax(x). Returns log Σ exp(x). `shares` may be x.
template <class T>
T softmax(const T* x, std::int64_t count, T* shares) {
  const T maximum = *std::max_element(x, x + count);
  T sum = 0;
  for (std::int64_t i = 0; i < count; ++i) shares[i] = exponential(x[i] - maximum);
  for (std::int64_t i = 0; i < count; ++i) sum += shares[i];
  for (std::int64_t i = 0; i < count; ++i) shares[i] /= sum;
  return maximum + natural_log(sum);
}

// shares ← scores / Σ scores. The small number prevents 0/0. `shares` may be `scores`.
template <class T>
void divide_by_sum(const T* scores, std::int64_t count, T* shares) {
  T sum = static_cast<T>(1e-20);
  for (std::int64_t i = 0; i < count; ++i) sum += scores[i];
  for (std::int64_t i = 0; i < count; ++i) shares[i] = scores[i] / sum;
}

// Moves the n ids with the highest scores to the front, the best first. Of equal scores the smaller id wins. NaN is highest.
template <class T>
void best_first(std::vector<std::int32_t>& ids, std::int64_t n, const T* scores) {
  const auto above = [](T a, T b) { return a > b || (std::isnan(a) && !std::isnan(b)); };
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return above(scores[a], scores[b]) || (!above(scores[b], scores[a]) && a < b);
  });
}

// Works on one token at a time. A thread uses one object for many tokens, so the vectors are allocated once.
template <class T>
class Router {
 public:
  explicit Router(const RoutingRule& rule)
      : rule_(rule), scores_(static_cast<std::size_t>(rule.experts)), group_scores_(static_cast<std::size_t>(rule.groups)) {}

  void set_scores(const T* logits) {
    T* scores = scores_.data();
    switch (rule_.score) {
      case RouterScore::softmax_of_chosen: std::copy_n(logits, rule_.experts, scores); break;
      case RouterScore::softmax: softmax(logits, rule_.experts, scores); break;
      case RouterScore::sigmoid:
        for (std::int64_t e = 0; e < rule_.experts; ++e) scores[e] = 1 / (1 + exponential(-logits[e]));
    }
  }
  const T* scores() const { return scores_.data(); }

  // The best experts by the scores, in ascending order.
  void choose(std::int32_t* chosen) {
    ids_.clear();
    if (rule_.groups_chosen == rule_.groups)
      append(ids_, 0, rule_.experts);
    else
      append_best_groups();
    best_first(ids_, rule_.chosen, scores());
    std::copy_n(ids_.begin(), rule_.chosen, chosen);
    std::sort(chosen, chosen + rule_.chosen);
  }

  // The scores by which a full expert chooses among tokens.
  void rank(const std::int32_t* chosen, T* ranks) {
    const T* shares = scores();
    if (rule_.score == RouterScore::softmax_of_chosen) {
      shares_.resize(scores_.size());
      softmax(scores(), rule_.experts, shares_.data());
      shares = shares_.data();
    }
    for (std::int64_t j = 0; j < rule_.chosen; ++j) ranks[j] = shares[chosen[j]];
  }

  // The weights of the chosen experts, before they are multiplied by `scale`.
  void weigh(const std::int32_t* chosen, T* weights) const {
    for (std::int64_t j = 0; j < rule_.chosen; ++j) weights[j] = scores()[chosen[j]];
    if (rule_.score == RouterScore::softmax_of_chosen) softmax(weights, rule_.chosen, weights);
    if (rule_.score == RouterScore::sigmoid && rule_.chosen > 1) divide_by_sum(weights, rule_.chosen, weights);
  }

 private:
  static void append(std::vector<std::int32_t>& ids, std::int64_t first, std::int64_t count) {
    for (std::int64_t id = first; id < first + count; ++id) ids.push_back(static_cast<std::int32_t>(id));
  }

  void append_best_groups() {
    const std::int64_t size = rule_.experts / rule_.groups;
    const std::int64_t counted = std::max<std::int64_t>(1, rule_.chosen / rule_.groups_chosen);
    for (std::int64_t group = 0; group < rule_.groups; ++group) {
      members_.clear();
      append(members_, group * size, size);
      best_first(members_, counted, scores());
      T& sum = group_scores_[static_cast<std::size_t>(group)] = 0;
      std::for_each_n(members_.begin(), counted, [&](std::int32_t expert) { sum += scores()[expert]; });
    }
    members_.clear();
    append(members_, 0, rule_.groups);
    best_first(members_, rule_.groups_chosen, group_scores_.data());
    std::for_each_n(members_.begin(), rule_.groups_chosen, [&](std::int32_t group) { append(ids_, group * size, size); });
  }

  const RoutingRule& rule_;
  std::vector<T> scores_, group_scores_, shares_;
  std::vector<std::int32_t> ids_, members_;
};

// Calls f(Type<T>{}) for the type of the logits.
template <class F>
void visit_logits(const Tensor& logits, F&& f) {
  if (logits.dtype() == DType::f64) return f(Type<double>{});
  f(Type<float>{});
}

void check_logits(const Tensor& logits, const RoutingRule& rule);

}  // namespace chorale::routing
