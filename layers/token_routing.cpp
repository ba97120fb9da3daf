#include "layers/token_routing.hpp"

#include "layers/context.hpp"
#include "src/math/forced_routing.hpp"

namespace chorale {
namespace {

bool divided(const Context& context) { return context.sequences->divided() && !context.cache; }

bool needs_sequences(const RoutingRule& rule, const Context& context) {
  return divided(context) && (rule.capacity > 0 || counts_sequences(rule, context));
}

// Returns the forced choices of this rank's tokens. If ranks split all samples alike, the result covers one sample;
// otherwise, it covers every sample.
std::vector<std::int32_t> choices_here(std::span<const std::int32_t> forced, std::int64_t chosen, std::int64_t samples,
                                       const Context& context) {
  std::vector<std::int32_t> all;
  for (std::int64_t sample = 0; sample < (context.cuts ? samples : 1); ++sample) {
    const std::vector<std::int32_t> choices = choices_at(forced, context.sequences->places(sample, context), chosen);
    all.insert(all.end(), choices.begin(), choices.end());
  }
  return all;
}

// Used for a plan. Fills in the routing as if every sequence on every rank had the expert choices in `of_sequence`.
void plan(Routing& routing, std::vector<std::int32_t> of_sequence, const RoutingRule& rule, const Leaves& leaves,
          const Context& context) {
  const std::vector<std::int32_t> here = choices_at(of_sequence, context.sequences->places(0, context), rule.chosen);
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
  const bool whole = needs_sequences(rule, context);
  if (context.cache) rule.capacity = 0;
  RoutingRule by = rule;
  std::vector<std::int32_t> choices(forced.begin(), forced.end());
  if (!whole) by.sequence = leaves.tokens;
  if (!whole && !forced.empty()) {
    choices = choices_here(forced, rule.chosen, logits.dim(0) / leaves.tokens, context);
    by.sequence = std::ssize(choices) / rule.chosen;
  }

  TokenRouting here{
      choose_experts(whole ? rows.whole(logits, context) : logits, by, context.memory, context.queue, choices)};
  Routing& routing = here.routing;
  if (counts_sequences(rule, context)) {
    here.counts = context.typed({routing.chosen.dim(0) / rule.sequence, rule.experts}, DType::i64);
    count_choices(routing.chosen, here.counts, context.queue);
  }
  if (whole)
    routing = {rows.own(routing.chosen, context), rows.own(routing.weights, context), rows.own(routing.places, context)};
  if (logits.phantom() && divided(context))
    plan(routing, planned_choices(rule, forced), rule, leaves, context);
  else
    number_rows(by, leaves, routing, context.queue);
  return here;
}

}  // namespace chorale
