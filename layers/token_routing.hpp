// Routes a rank's tokens if ranks split sequences. Choices, drops and losses equal those of a rank that has whole sequences,
// because every rank that needs the rest of a sequence routes all of it:
//
//   logits here ── whole ──▶ logits of sequences ── route ──▶ routing of sequences ── own ──▶ routing here
//
// The rest is needed for a capacity, and for a balance loss by sequence if a backward pass follows. In these cases each rank
// sends the logits of its tokens to all others: E values per token, where attention sends hundreds. Otherwise nothing is
// sent, because a token's choices depend only on its own logits.
#pragma once
#include <span>

#include "src/math/routing.hpp"

namespace chorale {

struct Context;

struct TokenRouting {
  Routing routing;
  Tensor counts;  // RoutingRule::counts of the sequences' own choices; empty: the gradient needs none from other ranks
};

// `rule` and `forced` describe whole sequences. In generation no token is dropped, because each pass has only a part of
// a sequence.
TokenRouting route_tokens(const Tensor& logits, RoutingRule rule, std::span<const std::int32_t> forced, Context& context);
// Whether route_tokens gives counts.
bool counts_sequences(const RoutingRule& rule, const Context& context);
// The rule for the gradients of this rank's tokens.
RoutingRule rule_of_tokens(RoutingRule rule, const Tensor& counts, const Context& context);

}  // namespace chorale
