#include "src/math/routing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/math/device_kernels.hpp"
#include "src/math/forced_routing.hpp"
#include "src/math/kernel.hpp"
#include "src/math/router.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

using namespace routing;

// Chooses the experts of a token, in ascending order. `bias` can be null. `ids` is scratch space for the experts of the
// token's groups.
template <class T>
void choose(const TokenRule& rule, const Room<T>& room, const float* bias, std::vector<std::int32_t>& ids,
            std::int32_t* chosen) {
  const T* scores = scores_of_choice(Alone{}, rule, room, bias);
  const OpenGroups<T> open(Alone{}, rule, scores, room.of_groups);
  ids.clear();
  for (std::int32_t expert = 0; expert < rule.experts; ++expert)
    if (open.has(expert)) ids.push_back(expert);
  best_first(ids, rule.chosen, scores);
  std::copy_n(ids.begin(), rule.chosen, chosen);
  std::sort(chosen, chosen + rule.chosen);
}

// Sets `places` to −1 for the choices that exceed the capacity, sequence by sequence. For `ranks`, see set_ranks.
template <class T>
void drop(const RoutingRule& rule, std::int64_t tokens, const std::int32_t* chosen, const T* ranks, std::int32_t* places,
          int threads) {
  const std::int64_t choices = rule.sequence * rule.chosen, most = rule.most_of_expert();
  parallel_for(threads, tokens / rule.sequence, [&](std::int64_t first, std::int64_t last) {
    std::vector<std::vector<std::int32_t>> takes(static_cast<std::size_t>(rule.experts));  // the choices of each expert
    for (std::int64_t sequence = first; sequence < last; ++sequence) {
      for (auto& list : takes) list.clear();
      for (std::int64_t i = sequence * choices; i < (sequence + 1) * choices; ++i)
        takes[static_cast<std::size_t>(chosen[i])].push_back(static_cast<std::int32_t>(i));
      for (auto& list : takes) {
        if (std::ssize(list) <= most) continue;
        best_first(list, most, ranks);
        for (auto dropped = list.begin() + most; dropped != list.end(); ++dropped) places[*dropped] = -1;
      }
    }
  });
}

// Numbers the rows of all kept choices by (expert, token). Returns the counts.
std::vector<std::int64_t> numbered(const RoutingRule& rule, std::int64_t tokens, const Leaves& leaves,
                                   const std::int32_t* chosen, std::int32_t* places) {
  const std::int64_t k = rule.chosen, all = leaves.count(tokens);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rule.experts * all));
  const auto list = [&](std::int64_t i) { return static_cast<std::size_t>(chosen[i] * all + leaves.of(i / k)); };
  for (std::int64_t i = 0; i < tokens * k; ++i)
    if (places[i] >= 0) ++counts[list(i)];
  std::vector<std::int64_t> next(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::int64_t{0});
  for (std::int64_t i = 0; i < tokens * k; ++i)
    if (places[i] >= 0) places[i] = static_cast<std::int32_t>(next[list(i)]++);
  return counts;
}

// Counts the dropped choices of each expert. If the routing is on a device, first copies the choices to the host.
void count_drops(const RoutingRule& rule, Routing& routing) {
  routing.dropped.assign(static_cast<std::size_t>(rule.experts), 0);
  if (rule.capacity == 0) return;
  with_values<std::int32_t>(routing.chosen, Use::read, [&](std::span<std::int32_t> chosen) {
    with_values<std::int32_t>(routing.places, Use::read, [&](std::span<std::int32_t> places) {
      for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] < 0) ++routing.dropped[static_cast<std::size_t>(chosen[i])];
    });
  });
}

}  // namespace

void routing::check_logits(const Tensor& logits, const RoutingRule& rule) {
  require(logits.shape().size() == 2 && logits.dim(1) == rule.experts && logits.dtype() == statistic_of(logits.dtype()),
          "a router of {} experts expects logits of that many columns in f32 or f64, got {} of {}", rule.experts,
          to_string(logits.shape()), name_of(logits.dtype()));
  require(logits.dim(0) * rule.chosen <= std::numeric_limits<std::int32_t>::max(),
          "{} tokens with {} experts each have more choices than fit in an i32", logits.dim(0), rule.chosen);
  require(!rule.bias || (rule.bias.shape() == Shape{rule.experts} && rule.bias.dtype() == DType::f32),
          "biases of {} experts need that many elements of f32, got {} of {}", rule.experts, to_string(rule.bias.shape()),
          name_of(rule.bias.dtype()));
  require(!rule.counts || (rule.counts.dtype() == DType::i64 && rule.counts.count() % rule.experts == 0 &&
                           rule.counts.count() > 0 && logits.dim(0) % (rule.counts.count() / rule.experts) == 0),
          "counts of {} experts need rows of that many elements of i64 for equal parts of {} tokens, got {} of {}",
          rule.experts, logits.dim(0), to_string(rule.counts.shape()), name_of(rule.counts.dtype()));
  require((rule.capacity == 0 && rule.balance == 0) || (rule.sequence > 0 && logits.dim(0) % rule.sequence == 0),
          "with a capacity or a balance loss {} tokens must be whole sequences of {}", logits.dim(0), rule.sequence);
}

void RoutingRule::check() const {
  if (experts < 1 || chosen < 1 || chosen > experts)
    usage_error("a token must choose between one and all experts",
                fmt::format("it chooses {} of {} experts", chosen, experts),
                "give --moe-router-topk a value from 1 to --num-experts");
  if (groups < 1 || experts % groups != 0)
    usage_error("the experts do not divide into groups of equal size", fmt::format("{} experts, {} groups", experts, groups),
                "give --moe-router-num-groups a divisor of --num-experts");
  if (groups_chosen < 1 || groups_chosen > groups || groups_chosen * (experts / groups) < chosen)
    usage_error("the chosen groups must have enough experts",
                fmt::format("a token chooses {} experts from {} of {} groups with {} experts each", chosen, groups_chosen,
                            groups, experts / groups),
                "change --moe-router-group-topk or --moe-router-topk");
  if (!(capacity >= 0) || !std::isfinite(capacity))
    usage_error("the capacity of an expert cannot be negative", fmt::format("the factor is {}", capacity),
                "give --moe-expert-capacity-factor a positive number, or leave it out to drop nothing");
  if (!(scale > 0) || !std::isfinite(scale))
    usage_error("the factor of the experts' weights must be positive", fmt::format("it is {}", scale),
                "change --moe-router-topk-scaling-factor");
  if (!(balance >= 0) || !std::isfinite(balance) || !(z >= 0) || !std::isfinite(z))
    usage_error("the router's losses need coefficients that are not negative", fmt::format("balance {}, z {}", balance, z),
                "change --moe-aux-loss-coeff or --moe-z-loss-coeff");
}

// Rounding can increase the floating-point product to just above an integer. The rounding error must not add a row to the
// capacity.
std::int64_t RoutingRule::most_of_expert() const {
  if (capacity == 0) return sequence;
  const double rows =
      capacity * static_cast<double>(chosen) * static_cast<double>(sequence) / static_cast<double>(experts) * (1 - 1e-12);
  return static_cast<std::int64_t>(std::min(std::ceil(rows), static_cast<double>(sequence)));
}

std::int64_t RoutingRule::most_rows(std::int64_t sequences, std::int64_t of_each, std::int64_t own) const {
  const std::int64_t rows = of_each * std::min(chosen, own);
  return sequences * (capacity == 0 ? rows : std::min(rows, own * most_of_expert()));
}

Routing route(const Tensor& logits, const RoutingRule& rule, const Leaves& leaves, Allocator& memory, const Queue& queue,
              std::span<const std::int32_t> forced) {
  Routing routing = choose_experts(logits, rule, memory, queue, forced);
  number_rows(rule, leaves, routing, queue);
  return routing;
}

Routing choose_experts(const Tensor& logits, const RoutingRule& rule, Allocator& memory, const Queue& queue,
                       std::span<const std::int32_t> forced) {
  rule.check();
  check_logits(logits, rule);
  require(forced.empty() || std::ssize(forced) == rule.sequence * rule.chosen,
          "{} experts are forced on a sequence of {} tokens with {} each", forced.size(), rule.sequence, rule.chosen);
  const std::int64_t tokens = logits.dim(0), k = rule.chosen;
  const auto table = [&](DType dtype) { return Tensor(memory, {tokens, k}, dtype, Category::activations); };
  Routing routing{table(DType::i32), table(logits.dtype()), table(DType::i32), {}, {}};
  const Kernel kernel(queue, "choice of experts", logits, routing.chosen, routing.weights, routing.places);
  if (kernel.skips()) {
    routing.planned = planned_choices(rule, forced);
    return routing;
  }
  if (queue.device) {
    queue.device->route(logits, rule, forced, routing, queue);
    return routing;
  }
  std::int32_t *chosen = routing.chosen.values<std::int32_t>().data(),
               *places = routing.places.values<std::int32_t>().data();
  std::fill_n(places, tokens * k, 0);
  const TokenRule token_rule(rule);
  const float* bias = rule.bias ? rule.bias.values<float>().data() : nullptr;
  visit_logits(logits, [&]<class T>(Type<T>) {
    const T* in = logits.values<T>().data();
    T* weights = routing.weights.values<T>().data();
    std::vector<T> ranks(rule.capacity > 0 ? static_cast<std::size_t>(tokens * k) : 0);
    parallel_for(queue.threads, tokens, [&](std::int64_t first, std::int64_t last) {
      std::vector<T> numbers(static_cast<std::size_t>(Room<T>::count(token_rule)));
      std::vector<std::int32_t> ids;
      const Room<T> room(numbers.data(), token_rule);
      for (std::int64_t t = first; t < last; ++t) {
        set_scores(Alone{}, token_rule, in + t * rule.experts, room.scores);
        if (forced.empty())
          choose(token_rule, room, bias, ids, chosen + t * k);
        else
          std::copy_n(forced.begin() + t % rule.sequence * k, k, chosen + t * k);
        weigh(Alone{}, token_rule, room.scores, chosen + t * k, weights + t * k);
        for (std::int64_t j = 0; j < k; ++j) weights[t * k + j] *= static_cast<T>(rule.scale);
        if (rule.capacity > 0) set_ranks(Alone{}, token_rule, room, chosen + t * k, ranks.data() + t * k);
      }
    });
    if (rule.capacity == 0) return;
    drop(rule, tokens, chosen, ranks.data(), places, queue.threads);
    for (std::int64_t i = 0; i < tokens * k; ++i)
      if (places[i] < 0) weights[i] = 0;
  });
  return routing;
}

void number_rows(const RoutingRule& rule, const Leaves& leaves, Routing& routing, const Queue& queue) {
  const std::int64_t tokens = routing.chosen.dim(0);
  require(leaves.length > 0 && tokens % leaves.tokens == 0, "{} tokens are not samples of {} with leaves of {}", tokens,
          leaves.tokens, leaves.length);
  const Kernel kernel(queue, "numbers of rows", routing.chosen, routing.places);
  if (kernel.skips()) {
    require(rule.sequence > 0 && tokens % rule.sequence == 0 && rule.sequence % leaves.tokens == 0,
            "a plan needs whole sequences of whole leaves, not {} tokens in sequences of {} and leaves of samples of {}",
            tokens, rule.sequence, leaves.tokens);
    routing.counts = counts_of_samples(tokens / rule.sequence, routing.planned, rule, leaves);
    routing.dropped.assign(static_cast<std::size_t>(rule.experts), 0);
    return;
  }
  if (queue.device)
    queue.device->number_rows(rule, leaves, routing, queue);
  else
    routing.counts = numbered(rule, tokens, leaves, routing.chosen.values<std::int32_t>().data(),
                              routing.places.values<std::int32_t>().data());
  count_drops(rule, routing);
}

std::vector<std::int64_t> counts_of(std::span<const std::int32_t> choices, const RoutingRule& rule, const Leaves& leaves) {
  std::vector<float> equal(choices.size());
  std::vector<std::int32_t> places(choices.size());
  if (rule.capacity > 0) drop(rule, rule.sequence, choices.data(), equal.data(), places.data(), 1);
  return numbered(rule, rule.sequence, leaves, choices.data(), places.data());
}

std::vector<std::int32_t> planned_choices(const RoutingRule& rule, std::span<const std::int32_t> forced) {
  std::vector<std::int32_t> choices(forced.begin(), forced.end());
  if (forced.empty()) choices = forced_choices(ForcedRouting::balanced, rule, 0);
  if (rule.capacity == 0) return choices;
  std::vector<float> equal(choices.size());
  std::vector<std::int32_t> places(choices.size());
  drop(rule, rule.sequence, choices.data(), equal.data(), places.data(), 1);
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (places[i] < 0) choices[i] = -1;
  return choices;
}

std::vector<std::int64_t> counts_of_samples(std::int64_t samples, std::span<const std::int32_t> choices,
                                            const RoutingRule& rule, const Leaves& leaves) {
  const std::int64_t each = leaves.count(std::ssize(choices) / rule.chosen);
  std::vector<std::int64_t> one(static_cast<std::size_t>(rule.experts * each));
  for (std::int64_t i = 0; i < std::ssize(choices); ++i)
    if (const std::int64_t expert = choices[static_cast<std::size_t>(i)]; expert >= 0)
      ++one[static_cast<std::size_t>(expert * each + leaves.of(i / rule.chosen))];
  std::vector<std::int64_t> counts;
  for (auto expert = one.begin(); expert != one.end(); expert += each)
    for (std::int64_t sample = 0; sample < samples; ++sample) counts.insert(counts.end(), expert, expert + each);
  return counts;
}

std::vector<std::int32_t> choices_at(std::span<const std::int32_t> choices, std::span<const std::int64_t> rows,
                                     std::int64_t chosen) {
  std::vector<std::int32_t> some;
  for (const std::int64_t row : rows)
    for (std::int64_t i = row * chosen; i < (row + 1) * chosen; ++i) some.push_back(choices[static_cast<std::size_t>(i)]);
  return some;
}

}  // namespace chorale
