#include <algorithm>
#include <span>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/router_gradient.hpp"

namespace chorale {
namespace {

using namespace routing;

// counts [n, experts]: the number of choices of each expert in each of n equal parts of the tokens.
void count(std::span<const std::int32_t> chosen, std::int64_t experts, std::span<std::int64_t> counts) {
  std::ranges::fill(counts, 0);
  if (chosen.empty()) return;
  const std::size_t each = chosen.size() / (counts.size() / static_cast<std::size_t>(experts));
  for (std::size_t i = 0; i < chosen.size(); ++i)
    ++counts[i / each * static_cast<std::size_t>(experts) + static_cast<std::size_t>(chosen[i])];
}

}  // namespace

void count_choices(const Tensor& chosen, const Tensor& counts, const Queue& queue) {
  const std::int64_t parts = counts.dim(0);
  require(counts.shape().size() == 2 && counts.dtype() == DType::i64 && parts > 0 && chosen.dim(0) % parts == 0,
          "{} tokens do not divide into the rows of counts {} of {}", chosen.dim(0), to_string(counts.shape()),
          name_of(counts.dtype()));
  const Kernel kernel(queue, "counts of choices", chosen, counts);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->count_choices(chosen, counts, queue);
  count(chosen.values<std::int32_t>(), counts.dim(1), counts.values<std::int64_t>());
}

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
  const Kernel kernel(queue, "gradient of routing", logits, chosen, places, dweights, dlogits);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->routing_gradient(logits, rule, chosen, places, dweights, factor, dlogits, queue);
  const std::int32_t* experts = chosen.values<std::int32_t>().data();
  const std::int32_t* rows = places.values<std::int32_t>().data();
  const TokenRule token_rule(rule);
  std::vector<std::int64_t> of_sequences;
  if (rule.balance > 0 && !rule.counts) {
    of_sequences.resize(static_cast<std::size_t>(tokens / rule.sequence * rule.experts));
    count(chosen.values<std::int32_t>(), rule.experts, of_sequences);
  }
  const std::int64_t* const counts = rule.balance == 0 ? nullptr
                                     : rule.counts     ? rule.counts.values<std::int64_t>().data()
                                                       : of_sequences.data();
  const std::int64_t tokens_of_counts = rule.counts ? tokens * rule.experts / rule.counts.count() : rule.sequence;
  visit_logits(logits, [&]<class T>(Type<T>) {
    const T *in = logits.values<T>().data(), *above = dweights.values<T>().data();
    T* out = dlogits.values<T>().data();
    parallel_for(queue.threads, tokens, [&](std::int64_t first, std::int64_t last) {
      std::vector<T> numbers(static_cast<std::size_t>(Room<T>::count(token_rule)));
      const Room<T> room(numbers.data(), token_rule);
      const TokenGradient<Alone, T> gradient({}, token_rule, room, factor);
      for (std::int64_t t = first; t < last; ++t) {
        const std::int64_t* own = counts ? counts + t / tokens_of_counts * rule.experts : nullptr;
        gradient.of(in + t * rule.experts, experts + t * k, rows + t * k, above + t * k, own, out + t * rule.experts);
      }
    });
  });
}

}  // namespace chorale
