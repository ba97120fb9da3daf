// The router of routing.hpp in double precision, one value at a time. The reference finds choices by comparing every score
// with all other scores.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/math/routing.hpp"

namespace chorale::reference {

using Numbers = std::vector<double>;
using Choices = std::vector<std::int32_t>;

inline Numbers softmax(Numbers x) {
  const double maximum = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double v : x) sum += std::exp(v - maximum);
  for (double& v : x) v = std::exp(v - maximum) / sum;
  return x;
}

inline Numbers sigmoids(Numbers x) {
  for (double& v : x) v = 1 / (1 + std::exp(-v));
  return x;
}

// The number of scores that precede score i: all higher scores, and equal scores with a smaller index.
inline std::int64_t rank_of(std::size_t i, const Numbers& scores) {
  std::int64_t rank = 0;
  for (std::size_t other = 0; other < scores.size(); ++other)
    rank += scores[other] > scores[i] || (scores[other] == scores[i] && other < i);
  return rank;
}

// Returns the experts of one token.
inline Choices choose(const Numbers& logits, const RoutingRule& rule) {
  Numbers scores = logits;
  if (rule.score == RouterScore::softmax) scores = softmax(logits);
  if (rule.score == RouterScore::sigmoid) scores = sigmoids(logits);
  if (rule.bias)
    for (std::size_t e = 0; e < scores.size(); ++e) scores[e] += static_cast<double>(rule.bias.values<float>()[e]);
  const auto size = scores.size() / static_cast<std::size_t>(rule.groups);
  Numbers of_groups;
  for (auto first = scores.begin(); first != scores.end(); first += static_cast<std::ptrdiff_t>(size)) {
    Numbers members(first, first + static_cast<std::ptrdiff_t>(size));
    std::sort(members.rbegin(), members.rend());
    const std::int64_t counted = std::max<std::int64_t>(1, rule.chosen / rule.groups_chosen);
    double sum = 0;
    for (std::int64_t i = 0; i < counted && i < std::ssize(members); ++i) sum += members[static_cast<std::size_t>(i)];
    of_groups.push_back(sum);
  }
  for (std::size_t e = 0; e < scores.size(); ++e)
    if (rank_of(e / size, of_groups) >= rule.groups_chosen) scores[e] = -INFINITY;
  Choices chosen;
  for (std::size_t e = 0; e < scores.size(); ++e)
    if (scores[e] != -INFINITY && rank_of(e, scores) < rule.chosen) chosen.push_back(static_cast<std::int32_t>(e));
  return chosen;
}

// Returns the weights of one token's experts, before drops.
inline Numbers weights(const Numbers& logits, const Choices& chosen, const RoutingRule& rule) {
  Numbers scores = logits, weights;
  if (rule.score == RouterScore::softmax) scores = softmax(logits);
  if (rule.score == RouterScore::sigmoid) scores = sigmoids(logits);
  for (const std::int32_t e : chosen) weights.push_back(scores[static_cast<std::size_t>(e)]);
  if (rule.score == RouterScore::softmax_of_chosen) weights = softmax(weights);
  if (rule.score == RouterScore::sigmoid && rule.chosen > 1) {
    double sum = 0;
    for (const double w : weights) sum += w;
    for (double& w : weights) w /= sum;
  }
  for (double& w : weights) w *= rule.scale;
  return weights;
}

// Returns, for one token's experts, the scores by which a full expert chooses among tokens.
inline Numbers ranks(const Numbers& logits, const Choices& chosen, const RoutingRule& rule) {
  const Numbers scores = rule.score == RouterScore::sigmoid ? sigmoids(logits) : softmax(logits);
  Numbers ranks;
  for (const std::int32_t e : chosen) ranks.push_back(scores[static_cast<std::size_t>(e)]);
  return ranks;
}

// Returns whether each choice [tokens, k] is dropped. A choice is dropped if better choices from the same sequence already
// fill its expert's capacity.
inline std::vector<bool> drops(const Choices& chosen, const Numbers& ranks, const RoutingRule& rule) {
  std::vector<bool> dropped(chosen.size());
  if (rule.capacity == 0) return dropped;
  const auto sequence = static_cast<std::size_t>(rule.sequence * rule.chosen);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::int64_t better = 0;
    for (std::size_t other = i / sequence * sequence; other < (i / sequence + 1) * sequence; ++other)
      better += chosen[other] == chosen[i] && (ranks[other] > ranks[i] || (ranks[other] == ranks[i] && other < i));
    const double fair = rule.capacity * static_cast<double>(rule.chosen * rule.sequence) / static_cast<double>(rule.experts);
    dropped[i] = static_cast<double>(better) >= std::ceil(fair - 1e-9);
  }
  return dropped;
}

// Returns the row index (place) of each choice, [tokens, k]. The row index is the number of kept choices that precede this
// choice if choices are sorted by expert, then by token.
inline Choices places(const Choices& chosen, const std::vector<bool>& dropped) {
  Choices places;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::int32_t before = 0;
    for (std::size_t other = 0; other < chosen.size(); ++other)
      before += !dropped[other] && (chosen[other] < chosen[i] || (chosen[other] == chosen[i] && other < i));
    places.push_back(dropped[i] ? -1 : before);
  }
  return places;
}

// Returns the balance loss plus the z-loss for the logits [tokens, E] of all tokens.
inline double router_losses(const Numbers& logits, const Choices& chosen, const RoutingRule& rule) {
  const auto experts = static_cast<std::size_t>(rule.experts), s = static_cast<std::size_t>(rule.sequence);
  const auto k = static_cast<std::size_t>(rule.chosen);
  double loss = 0;
  for (std::size_t sequence = 0; sequence < logits.size() / experts / s; ++sequence) {
    Numbers shares(experts), means(experts);  // f and P
    for (std::size_t t = sequence * s; t < (sequence + 1) * s; ++t) {
      const Numbers row(logits.begin() + static_cast<std::ptrdiff_t>(t * experts),
                        logits.begin() + static_cast<std::ptrdiff_t>((t + 1) * experts));
      Numbers scores = rule.score == RouterScore::sigmoid ? sigmoids(row) : softmax(row);
      double sum = 0, exponentials = 0;
      for (const double score : scores) sum += score;
      for (const double logit : row) exponentials += std::exp(logit);
      for (std::size_t e = 0; e < experts; ++e) means[e] += scores[e] / sum / static_cast<double>(s);
      for (std::size_t j = 0; j < k; ++j)
        shares[static_cast<std::size_t>(chosen[t * k + j])] += 1 / static_cast<double>(k * s);
      loss += rule.z * std::log(exponentials) * std::log(exponentials);
    }
    if (rule.counts) {
      double sum = 0;
      for (const std::int64_t n : rule.counts.values<std::int64_t>()) sum += static_cast<double>(n);
      for (std::size_t e = 0; e < experts; ++e)
        shares[e] =
            sum > 0 ? static_cast<double>(rule.counts.values<std::int64_t>()[e]) / sum : 1.0 / static_cast<double>(experts);
    }
    for (std::size_t e = 0; e < experts; ++e) loss += rule.balance * static_cast<double>(s * experts) * shares[e] * means[e];
  }
  return loss;
}

}  // namespace chorale::reference
