// The router's gradient on a device, with one warp per token and the code of src/math/router_gradient.hpp. In f32, its
// results are bit-identical to the host's.
//
// Cost per token: 2·E exponentials, and up to five sums of E values in each lane (five with a balance loss).
#include "src/math/router_gradient.hpp"

#include <optional>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/token_warp.cuh"

namespace chorale::cuda {
namespace {

using namespace routing;

constexpr int threads = 256;

// Adds the choices to the tensor `counts` [parts, E]. Each part consists of `choices` choices.
__global__ void add_choices(const std::int32_t* chosen, std::int64_t count, std::int64_t choices, std::int64_t experts,
                            std::int64_t* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i < count) atomicAdd(reinterpret_cast<unsigned long long*>(counts + i / choices * experts + chosen[i]), 1ull);
}

// The array `counts` has the shape [tokens / tokens_of_counts, E], or is null if there is no balance loss.
template <class T>
__global__ void gradient_of_tokens(TokenRule rule, const T* logits, const std::int32_t* chosen, const std::int32_t* places,
                                   const T* dweights, const std::int64_t* counts, std::int64_t tokens_of_counts,
                                   double factor, std::int64_t tokens, T* dlogits) {
  const std::int64_t token = token_of_warp(), k = rule.chosen, row = token * rule.experts;
  if (token >= tokens) return;
  const Room<T> room = room_of_warp<T>(rule);
  const TokenGradient<Warp, T> gradient({}, rule, room, factor);
  gradient.of(logits + row, chosen + token * k, places + token * k, dweights + token * k,
              counts ? counts + token / tokens_of_counts * rule.experts : nullptr, dlogits + row);
}

void count(const Tensor& chosen, std::int64_t parts, std::int64_t experts, std::int64_t* counts, const Queue& queue) {
  check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(parts * experts) * sizeof(std::int64_t), stream_of(queue)));
  if (chosen.count() == 0) return;
  launch(add_choices, {quotient_up(chosen.count(), threads), threads}, queue, data<std::int32_t>(chosen), chosen.count(),
         chosen.count() / parts, experts, counts);
}

}  // namespace

void count_choices(const Tensor& chosen, const Tensor& counts, const Queue& queue) {
  count(chosen, counts.dim(0), counts.dim(1), data<std::int64_t>(counts), queue);
}

void routing_gradient(const Tensor& logits, const RoutingRule& rule, const Tensor& chosen, const Tensor& places,
                      const Tensor& dweights, double factor, const Tensor& dlogits, const Queue& queue) {
  const std::int64_t tokens = logits.dim(0);
  if (tokens == 0) return;
  const TokenRule token_rule(rule);
  std::optional<Scratch<std::int64_t>> of_sequences;
  const std::int64_t* counts = nullptr;
  std::int64_t tokens_of_counts = rule.sequence;
  if (rule.balance > 0 && rule.counts) {
    counts = data<std::int64_t>(rule.counts);
    tokens_of_counts = tokens * rule.experts / rule.counts.count();
  } else if (rule.balance > 0) {
    of_sequences.emplace(tokens / rule.sequence * rule.experts, queue);
    count(chosen, tokens / rule.sequence, rule.experts, of_sequences->get(), queue);
    counts = of_sequences->get();
  }
  visit_logits(logits, [&]<class T>(Type<T>) {
    launch(gradient_of_tokens<T>, grid_of_tokens<T>(token_rule, tokens), queue, token_rule, data<T>(logits),
           data<std::int32_t>(chosen), data<std::int32_t>(places), data<T>(dweights), counts, tokens_of_counts, factor,
           tokens, data<T>(dlogits));
  });
}

}  // namespace chorale::cuda
