// The router on a device (src/math/routing.hpp). In f32, its results are bit-identical to the host's.
//
//   choose   a warp per token computes scores, choices and weights with the code of router.hpp
//   drop     sorts the choices by (sequence, expert, descending score) and drops all but the first C of each list
//   number   sorts the choices by (expert, token). A choice's sorted index is its place; counts are differences of indices
//
// One copy sends the counts to the host. The host waits for this copy, because the counts determine the shapes of later
// tensors.
//
// Cost per token: E exponentials, two sums of E values in each lane, and k searches of E scores by the warp. Each sort pass
// reads and writes 8 bytes per choice and handles 8 bits of the key. Up to 128 experts need two passes.
#include "src/math/routing.hpp"

#include <bit>
#include <optional>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/sort.cuh"
#include "src/math/cuda/token_warp.cuh"

namespace chorale::cuda {
namespace {

using namespace routing;

constexpr int threads = 256;

// Each lane of the warp passes its id as the argument `mine`, or −1 if the lane has no id. Returns the best of these ids.
template <class T>
__device__ std::int64_t best_of_warp(const T* scores, std::int64_t mine) {
  return over_warp(mine,
                   [&](std::int64_t a, std::int64_t b) { return b < 0 || (a >= 0 && precedes(scores, a, b)) ? a : b; });
}

// `bias` can be null.
template <class T>
__device__ void choose(const TokenRule& rule, const Room<T>& room, const float* bias, std::int32_t* chosen) {
  const Warp team;
  const T* scores = scores_of_choice(team, rule, room, bias);
  const OpenGroups<T> open(team, rule, scores, room.of_groups);
  std::int64_t last = -1;  // the worst expert chosen so far
  for (std::int64_t i = 0; i < rule.chosen; ++i) {
    std::int64_t mine = -1;
    each(team, rule.experts, [&](std::int64_t e) {
      if (open.has(e) && (last < 0 || precedes(scores, last, e)) && (mine < 0 || precedes(scores, e, mine))) mine = e;
    });
    last = best_of_warp(scores, mine);
  }
  // Writes the experts in ascending order. The position of an expert in the result is the number of chosen experts with
  // smaller ids.
  const unsigned lower_lanes = (1u << team.lane()) - 1;
  for (std::int64_t first = 0, index = 0; first < rule.experts; first += warp) {
    const std::int64_t e = first + team.lane();
    const bool is_chosen = e < rule.experts && open.has(e) && !precedes(scores, last, e);
    const unsigned lanes = __ballot_sync(whole_warp, is_chosen);
    if (is_chosen) chosen[index + __popc(lanes & lower_lanes)] = static_cast<std::int32_t>(e);
    index += __popc(lanes);
  }
  team.sync();
}

// If `forced` is true, the experts are already chosen. `bias` can be null. `ranks` is null if there is no capacity.
template <class T>
__global__ void route_tokens(TokenRule rule, const T* logits, const float* bias, std::int64_t tokens, bool forced,
                             std::int32_t* chosen, T* weights, T* ranks) {
  const std::int64_t token = token_of_warp(), k = rule.chosen;
  if (token >= tokens) return;
  const Warp team;
  const Room<T> room = room_of_warp<T>(rule);
  set_scores(team, rule, logits + token * rule.experts, room.scores);
  if (!forced) choose(rule, room, bias, chosen + token * k);
  weigh(team, rule, room.scores, chosen + token * k, room.weights);
  each(team, k, [&](std::int64_t j) { weights[token * k + j] = room.weights[j] * static_cast<T>(rule.scale); });
  if (ranks) set_ranks(team, rule, room, chosen + token * k, ranks + token * k);
}

// A choice's key. The upper half is the sorting criterion, and the lower half is the choice's index.
__device__ std::uint64_t key_of(std::int64_t list, std::int64_t choice) {
  return static_cast<std::uint64_t>(list) << 32 | static_cast<std::uint64_t>(choice);
}
__device__ std::int64_t list_of(std::uint64_t key) { return static_cast<std::int64_t>(key >> 32); }
__device__ std::int64_t choice_of(std::uint64_t key) { return static_cast<std::int64_t>(key & 0xffffffffu); }

int bits_of(std::int64_t lists) { return std::bit_width(static_cast<std::uint64_t>(lists)); }

struct InOrder {
  __device__ std::uint64_t operator()(std::int64_t choice) const { return key_of(0, choice); }
};

// Maps a choice's score to a 32-bit word, so that ascending words mean descending scores. An f64 score has two such words,
// and `word` selects one of them. NaN is the highest score, and no score is negative.
template <class T>
struct ByScore {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const T* scores;
  int word;

  __device__ std::uint64_t operator()(std::int64_t, std::uint64_t key) const {
    const T score = scores[choice_of(key)];
    const std::uint64_t place = score != score ? 0 : static_cast<Bits>(~std::bit_cast<Bits>(score));
    return (place >> (32 * word) & 0xffffffffu) << 32 | (key & 0xffffffffu);
  }
};

struct BySequenceAndExpert {
  const std::int32_t* chosen;
  std::int64_t choices, experts;  // number of choices per sequence, and number of experts
  __device__ std::uint64_t operator()(std::int64_t, std::uint64_t key) const {
    const std::int64_t choice = choice_of(key);
    return key_of(choice / choices * experts + chosen[choice], choice);
  }
};

// Sorts dropped choices to the end.
struct ByExpert {
  std::int64_t experts;
  __device__ std::uint64_t operator()(std::int64_t choice, std::int32_t expert, std::int32_t place) const {
    return key_of(place < 0 ? experts : expert, choice);
  }
};

template <class T>
__global__ void drop_after(const std::uint64_t* sorted, std::int64_t count, std::int64_t most, T* weights,
                           std::int32_t* places) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count || i - first_at_least(sorted, 0, i, key_of(list_of(sorted[i]), 0)) < most) return;
  weights[choice_of(sorted[i])] = 0;
  places[choice_of(sorted[i])] = -1;
}

__global__ void number(const std::uint64_t* sorted, std::int64_t count, std::int64_t experts, std::int32_t* places) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i < count && list_of(sorted[i]) < experts) places[choice_of(sorted[i])] = static_cast<std::int32_t>(i);
}

// counts is [E, number of leaves]. A token has k choices.
__global__ void count_rows(const std::uint64_t* sorted, std::int64_t count, std::int64_t experts, Leaves leaves,
                           std::int64_t all, std::int64_t k, std::int64_t* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= experts * all) return;
  const auto before = [&](std::int64_t leaf) {
    return first_at_least(sorted, 0, count, key_of(i / all, leaves.first_row(leaf) * k));
  };
  counts[i] = before(i % all + 1) - before(i % all);
}

template <class T>
void drop(const RoutingRule& rule, const Routing& routing, const T* scores, const Queue& queue) {
  const std::int64_t count = routing.places.count(), choices = rule.sequence * rule.chosen;
  const Scratch<std::uint64_t> keys(count, queue), sorted(count, queue);
  const auto sort_by = [&](auto key, int bits) {
    map(queue, key, count, keys.get(), static_cast<const std::uint64_t*>(sorted.get()));
    sort_upper(keys.get(), count, bits, sorted.get(), queue);
  };
  map(queue, InOrder{}, count, sorted.get());
  for (int word = 0; word < static_cast<int>(sizeof(T) / 4); ++word) sort_by(ByScore<T>{scores, word}, 32);
  sort_by(BySequenceAndExpert{data<std::int32_t>(routing.chosen), choices, rule.experts},
          bits_of(count / choices * rule.experts));
  launch(drop_after<T>, {quotient_up(count, threads), threads}, queue, sorted.get(), count, rule.most_of_expert(),
         data<T>(routing.weights), data<std::int32_t>(routing.places));
}

}  // namespace

void number_rows(const RoutingRule& rule, const Leaves& leaves, Routing& routing, const Queue& queue) {
  const std::int64_t count = routing.places.count(), experts = rule.experts;
  const std::int64_t all = leaves.count(routing.places.dim(0)), lists = experts * all;
  routing.counts.assign(static_cast<std::size_t>(lists), 0);
  if (count == 0) return;
  const Scratch<std::uint64_t> keys(count, queue), sorted(count, queue);
  const Scratch<std::int64_t> counts(lists, queue);
  std::int32_t* const places = data<std::int32_t>(routing.places);
  map(queue, ByExpert{experts}, count, keys.get(), static_cast<const std::int32_t*>(data<std::int32_t>(routing.chosen)),
      static_cast<const std::int32_t*>(places));
  sort_upper(keys.get(), count, bits_of(experts), sorted.get(), queue);
  launch(number, {quotient_up(count, threads), threads}, queue, sorted.get(), count, experts, places);
  launch(count_rows, {quotient_up(lists, threads), threads}, queue, sorted.get(), count, experts, leaves, all, rule.chosen,
         counts.get());
  check(cudaMemcpyAsync(routing.counts.data(), counts.get(), routing.counts.size() * sizeof(std::int64_t), cudaMemcpyDefault,
                        stream_of(queue)));
  check(cudaStreamSynchronize(stream_of(queue)));
}

void route(const Tensor& logits, const RoutingRule& rule, std::span<const std::int32_t> forced, const Routing& routing,
           const Queue& queue) {
  const TokenRule token_rule(rule);
  const std::int64_t tokens = logits.dim(0);
  std::int32_t *const chosen = data<std::int32_t>(routing.chosen), *const places = data<std::int32_t>(routing.places);
  if (tokens == 0) return;
  for (std::int64_t first = 0; !forced.empty() && first < tokens * rule.chosen; first += std::ssize(forced))
    check(cudaMemcpyAsync(chosen + first, forced.data(), forced.size_bytes(), cudaMemcpyDefault, stream_of(queue)));
  check(cudaMemsetAsync(places, 0, static_cast<std::size_t>(routing.places.bytes()), stream_of(queue)));
  visit_logits(logits, [&]<class T>(Type<T>) {
    std::optional<Scratch<T>> ranks;
    if (rule.capacity > 0) ranks.emplace(tokens * rule.chosen, queue);
    launch(route_tokens<T>, grid_of_tokens<T>(token_rule, tokens), queue, token_rule, data<T>(logits),
           rule.bias ? data<float>(rule.bias) : nullptr, tokens, !forced.empty(), chosen, data<T>(routing.weights),
           ranks ? ranks->get() : nullptr);
    if (ranks) drop<T>(rule, routing, ranks->get(), queue);
  });
}

}  // namespace chorale::cuda
