// The routing of a rank's tokens if ranks divide sequences. Choices, drops and losses are those of a rank that has whole
// sequences, because every rank that needs the rest of a sequence routes all of it:
//
//   logits here ── whole ──▶ logits of sequences ── route ──▶ routing of sequences ── own ──▶ routing here
//
// A capacity needs the rest, and so does a balance loss by sequence if a backward pass follows. Then a rank sends the logits
// of its tokens to all others: E numbers a token, where attention sends hundreds. Otherwise nothing is sent, because the
// choices of a token depend on its own logits only.
#pragma once
#include <span>

#include "src/math/routing.hpp"

namespace chorale {

struct Context;

struct TokenRouting {
  Routing routing;
  Tensor counts;  // RoutingRule::counts of the sequences' own choices; empty: the gradient needs none from other ranks
};

// `rule` and `forced` are those of whole sequences. In generation no token is dropped, because passes have parts of a
// sequence.
TokenRouting route_tokens(const Tensor& logits, RoutingRule rule, std::span<const std::int32_t> forced, Context& context);
// Whether route_tokens gives counts.
bool counts_sequences(const RoutingRule& rule, const Context& context);
// The rule for the gradients of this rank's tokens.
RoutingRule rule_of_tokens(RoutingRule rule, const Tensor& counts, const Context& context);

}  // namespace chorale
