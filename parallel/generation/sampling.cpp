#include "parallel/generation/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/random.hpp"

namespace chorale {
namespace {

// A logit of −∞ excludes its token. NaN and +∞ are refused, and at least one logit must be finite.
void require_numbers(std::span<const float> logits) {
  const auto bad = [](float logit) { return std::isnan(logit) || logit == std::numeric_limits<float>::infinity(); };
  const auto first = std::find_if(logits.begin(), logits.end(), bad);
  if (first == logits.end() && std::any_of(logits.begin(), logits.end(), [](float l) { return std::isfinite(l); })) return;
  const auto token = first == logits.end() ? 0 : first - logits.begin();
  throw Error(Exit::runtime, "the model produced Inf or NaN logits",
              fmt::format("the logit of token {} is {}", token, logits[static_cast<std::size_t>(token)]),
              "compute in a wider type (--dtype f32), or take an older checkpoint");
}

}  // namespace

std::int32_t sample(std::span<const float> logits, const Sampling& s, std::uint64_t number) {
  require(!logits.empty(), "there is nothing to sample from");
  require_numbers(logits);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  // Ties are ordered by token id, so the same logits give the same token everywhere.
  const auto likelier = [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; };
  if (s.temperature <= 0) return *std::min_element(order.begin(), order.end(), likelier);
  if (s.top_k > 0 && s.top_k < static_cast<std::int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + s.top_k, order.end(), likelier);
    order.resize(static_cast<std::size_t>(s.top_k));
  }
  std::sort(order.begin(), order.end(), likelier);

  std::vector<double> weights;
  for (const std::int32_t token : order) weights.push_back(std::exp((logit(token) - logit(order[0])) / s.temperature));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  std::size_t last = 0;
  for (; last < weights.size() && kept < s.top_p * all; ++last) kept += weights[last];
  last = std::max<std::size_t>(last, 1);
  kept = std::max(kept, weights[0]);

  double left = kept * static_cast<double>(Random{.seed = s.seed}.uniform(number));
  for (std::size_t i = 0; i < last; ++i)
    if ((left -= weights[i]) < 0) return order[i];
  return order[last - 1];
}

}  // namespace chorale
