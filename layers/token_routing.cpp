#include "layers/token_routing.hpp"

#include "layers/context.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale {
namespace {

bool divided(const Context& context) { return context.sequences->divided() && !context.cache; }

bool needs_sequences(const RoutingRule& rule, const Context& context) {
  return divided(context) && (rule.capacity > 0 || counts_sequences(rule, context));
}

// In a plan: every sequence has these choices on every rank.
void plan(Routing& routing, std::vector<std::int32_t> of_sequence, const RoutingRule& rule, const Leaves& leaves,
          const Context& context) {
  const std::vector<std::int32_t> here = choices_at(of_sequence, context.sequences->places(context), rule.chosen);
  routing.counts = counts_of_samples(routing.chosen.dim(0) / leaves.tokens, here, rule, leaves);
  routing.dropped.assign(static_cast<std::size_t>(rule.experts), 0);
  routing.planned = std::move(of_sequence);
}

}  // namespace

bool counts_sequences(const RoutingRule& rule, const Context& context) {
  return divided(context) && context.tape && rule.balance > 0 && !rule.counts;
}

RoutingRule rule_of_tokens(RoutingRule rule, const Tensor& counts, const Context& context) {
  if (divided(context)) rule.sequence = context.tokens.tokens;
  if (counts) rule.counts = counts;
  return rule;
}

TokenRouting route_tokens(const Tensor& logits, RoutingRule rule, std::span<const std::int32_t> forced, Context& context) {
  const SequenceRows& rows = *context.sequences;
  const Leaves leaves = context.cache ? Leaves(logits.dim(0)) : context.leaves();
  const auto routed = [&](const Tensor& all, const RoutingRule& by, const Leaves& of,
                          std::span<const std::int32_t> choices) {
    return route(all, by, of, context.memory, context.queue, choices);
  };
  if (needs_sequences(rule, context)) {
    Routing whole = routed(rows.whole(logits, context), rule, {leaves.length, rule.sequence}, forced);
    TokenRouting here{{rows.own(whole.chosen, context), rows.own(whole.weights, context), rows.own(whole.places, context)}};
    if (counts_sequences(rule, context)) {
      here.counts = context.typed({whole.chosen.dim(0) / rule.sequence, rule.experts}, DType::i64);
      count_choices(whole.chosen, here.counts, context.queue);
    }
    if (logits.phantom())
      plan(here.routing, std::move(whole.planned), rule, leaves, context);
    else
      number_rows(rule, leaves, here.routing, context.queue);
    return here;
  }
  RoutingRule own = rule;
  own.sequence = leaves.tokens;
  if (context.cache) own.capacity = 0;
  if (!context.cache && !divided(context)) return {routed(logits, own, leaves, forced), {}};
  std::vector<std::int32_t> choices;
  if (!forced.empty()) choices = choices_at(forced, rows.places(context), rule.chosen);
  TokenRouting here{routed(logits, own, leaves, choices), {}};
  if (logits.phantom() && divided(context))
    plan(here.routing,
         forced.empty() ? forced_choices(ForcedRouting::balanced, rule, 0)
                        : std::vector<std::int32_t>(forced.begin(), forced.end()),
         rule, leaves, context);
  return here;
}

}  // namespace chorale
