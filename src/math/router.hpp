// Scores, choices and weights of single tokens, for the host and for devices. router_gradient.hpp computes the gradients. T
// is float or double. A team is the set of threads that process one token. On the host, a team is one thread; on a device, a
// team is one warp. The threads split the experts:
//
//   a value per expert     thread i % size computes expert i                 e.g. exponentials
//   a sum or a maximum     every thread computes it in ascending order, so host and device results are bit-identical
//
// The intermediate values of a token are stored in a workspace (Room), which all threads of the token's team can read.
// Functions end with team.sync(), so that the next function reads the values that all threads have written.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>

#include "src/math/routing.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::routing {

// A team of one thread.
struct Alone {
  static constexpr std::int64_t size = 1;
  constexpr std::int64_t lane() const { return 0; }
  constexpr void sync() const {}
};

// Calls f(i) for each index i in [0, `count`) that belongs to this thread.
template <class Team, class F>
[[gnu::always_inline]] constexpr void each(Team team, std::int64_t count, F f) {
  for (std::int64_t i = team.lane(); i < count; i += Team::size) f(i);
}

// The fields of a RoutingRule that are needed to route one token. TokenRule is small enough to be a kernel argument.
struct TokenRule {
  std::int64_t experts, chosen, groups, groups_chosen;
  RouterScore score;
  double scale, balance, z;

  explicit TokenRule(const RoutingRule& r)
      : experts(r.experts),
        chosen(r.chosen),
        groups(r.groups),
        groups_chosen(r.groups_chosen),
        score(r.score),
        scale(r.scale),
        balance(r.balance),
        z(r.z) {}
};

// The workspace of one token.
template <class T>
struct Room {
  T *scores, *shares, *slopes;  // one value per expert
  T* of_groups;
  T *weights, *dweights;  // one value per chosen expert

  static constexpr std::int64_t count(const TokenRule& rule) { return 3 * rule.experts + rule.groups + 2 * rule.chosen; }
  constexpr Room(T* memory, const TokenRule& rule)
      : scores(memory),
        shares(scores + rule.experts),
        slopes(shares + rule.experts),
        of_groups(slopes + rule.experts),
        weights(of_groups + rule.groups),
        dweights(weights + rule.chosen) {}
};

constexpr float exponential(float x) { return math::exp(x); }
constexpr float natural_log(float x) { return math::log(x); }
template <std::same_as<double> T>
constexpr T exponential(T x) {
  return std::exp(x);
}
template <std::same_as<double> T>
constexpr T natural_log(T x) {
  return std::log(x);
}

// Sets `shares` to softmax(x), and returns log Σ exp(x). `shares` can be the same array as `x`.
template <class Team, class T>
constexpr T softmax(Team team, const T* x, std::int64_t count, T* shares) {
  T maximum = x[0], sum = 0;
  for (std::int64_t i = 1; i < count; ++i) maximum = maximum < x[i] ? x[i] : maximum;
  team.sync();
  each(team, count, [&](std::int64_t i) { shares[i] = exponential(x[i] - maximum); });
  team.sync();
  for (std::int64_t i = 0; i < count; ++i) sum += shares[i];
  team.sync();
  each(team, count, [&](std::int64_t i) { shares[i] /= sum; });
  team.sync();
  return maximum + natural_log(sum);
}

// shares ← scores / Σ scores. A tiny value added to the sum prevents 0/0. `shares` can be the same array as `scores`.
template <class Team, class T>
constexpr void divide_by_sum(Team team, const T* scores, std::int64_t count, T* shares) {
  T sum = static_cast<T>(1e-20);
  for (std::int64_t i = 0; i < count; ++i) sum += scores[i];
  team.sync();
  each(team, count, [&](std::int64_t i) { shares[i] = scores[i] / sum; });
  team.sync();
}

// Defines the order in which ids are chosen: by descending score, and for equal scores the smaller id first. NaN is the
// highest score.
template <class T>
constexpr bool higher(T a, T b) {
  return a > b || (a != a && b == b);
}
template <class T>
constexpr bool precedes(const T* scores, std::int64_t a, std::int64_t b) {
  return higher(scores[a], scores[b]) || (!higher(scores[b], scores[a]) && a < b);
}

// Moves the n best ids to the front, best first. Used only on the host.
template <class T>
void best_first(std::vector<std::int32_t>& ids, std::int64_t n, const T* scores) {
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(),
                    [&](std::int32_t a, std::int32_t b) { return precedes(scores, a, b); });
}

// Returns the first of the ids in [`first`, `end`) that comes after `last` in this order. If `last` is −1, returns the best
// id. Returns −1 if there is no such id.
template <class T>
constexpr std::int64_t next_best(const T* scores, std::int64_t first, std::int64_t end, std::int64_t last) {
  std::int64_t best = -1;
  for (std::int64_t id = first; id < end; ++id)
    if ((last < 0 || precedes(scores, last, id)) && (best < 0 || precedes(scores, id, best))) best = id;
  return best;
}

// The experts from which a token can choose: the experts of the token's best groups.
template <class T>
class OpenGroups {
 public:
  template <class Team>
  constexpr OpenGroups(Team team, const TokenRule& rule, const T* scores, T* of_groups)
      : of_groups_(of_groups), size_(rule.experts / rule.groups) {
    if (rule.groups_chosen == rule.groups) return;
    const std::int64_t counted = rule.chosen < rule.groups_chosen ? 1 : rule.chosen / rule.groups_chosen;
    each(team, rule.groups, [&](std::int64_t group) {
      T sum = 0;
      for (std::int64_t i = 0, last = -1; i < counted; ++i) {
        last = next_best(scores, group * size_, (group + 1) * size_, last);
        sum += scores[last];
      }
      of_groups[group] = sum;
    });
    team.sync();
    for (std::int64_t i = 0; i < rule.groups_chosen; ++i) last_ = next_best(of_groups, 0, rule.groups, last_);
  }
  constexpr bool has(std::int64_t expert) const { return last_ < 0 || !precedes(of_groups_, last_, expert / size_); }

 private:
  const T* of_groups_;
  std::int64_t size_, last_ = -1;  // `last_` is the worst of the best groups, or −1 if all groups are allowed
};

template <class Team, class T>
constexpr void set_scores(Team team, const TokenRule& rule, const T* logits, T* scores) {
  if (rule.score == RouterScore::softmax) {
    softmax(team, logits, rule.experts, scores);
    return;
  }
  const bool sigmoid = rule.score == RouterScore::sigmoid;
  each(team, rule.experts, [&](std::int64_t e) { scores[e] = sigmoid ? 1 / (1 + exponential(-logits[e])) : logits[e]; });
  team.sync();
}

// Returns the scores by which a token chooses its experts. If there are biases, these scores are stored in the array
// `slopes` of the workspace. `bias` can be null.
template <class Team, class T>
constexpr const T* scores_of_choice(Team team, const TokenRule& rule, const Room<T>& room, const float* bias) {
  if (!bias) return room.scores;
  each(team, rule.experts, [&](std::int64_t e) { room.slopes[e] = room.scores[e] + static_cast<T>(bias[e]); });
  team.sync();
  return room.slopes;
}

// Computes the weights of the chosen experts, without the factor `scale`.
template <class Team, class T>
constexpr void weigh(Team team, const TokenRule& rule, const T* scores, const std::int32_t* chosen, T* weights) {
  each(team, rule.chosen, [&](std::int64_t j) { weights[j] = scores[chosen[j]]; });
  team.sync();
  if (rule.score == RouterScore::softmax_of_chosen) softmax(team, weights, rule.chosen, weights);
  if (rule.score == RouterScore::sigmoid && rule.chosen > 1) divide_by_sum(team, weights, rule.chosen, weights);
}

// Sets `ranks` to the scores by which a full expert chooses among tokens.
template <class Team, class T>
constexpr void set_ranks(Team team, const TokenRule& rule, const Room<T>& room, const std::int32_t* chosen, T* ranks) {
  const bool logits = rule.score == RouterScore::softmax_of_chosen;
  if (logits) softmax(team, room.scores, rule.experts, room.shares);
  each(team, rule.chosen, [&](std::int64_t j) { ranks[j] = (logits ? room.shares : room.scores)[chosen[j]]; });
}

// Calls f(Type<T>{}) for the type of the logits.
template <class F>
void visit_logits(const Tensor& logits, F&& f) {
  if (logits.dtype() == DType::f64) return f(Type<double>{});
  f(Type<float>{});
}

void check_logits(const Tensor& logits, const RoutingRule& rule);

}  // namespace chorale::routing
