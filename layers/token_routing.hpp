// Chooses the experts of a rank's tokens when ranks split sequences. Choices, drops and losses are the same as on a rank
// that has complete sequences. If a rank needs the rest of a sequence, it routes the complete sequence:
//
//   logits here ── whole ──▶ logits of sequences ── route ──▶ routing of sequences ── own ──▶ routing here
//
// A rank needs the rest of a sequence in two cases: if experts have a capacity, or if a backward pass with a per-sequence
// balance loss follows. In these cases, each rank sends the logits of its tokens to all other ranks. The ranks then send E
// values per token, whereas attention sends hundreds of values per token. In all other cases nothing is sent, because a
// token's choices depend only on its own logits.
#pragma once
#include <span>

#include "src/math/routing.hpp"

namespace chorale {

struct Context;

struct TokenRouting {
  Routing routing;
  Tensor counts;  // RoutingRule::counts of the choices in these sequences; empty if the gradient needs no counts from other
                  // ranks
};

// `rule` and `forced` describe complete sequences. In generation, no token is dropped, because each pass has only a part of
// a sequence.
TokenRouting route_tokens(const Tensor& logits, RoutingRule rule, std::span<const std::int32_t> forced, Context& context);
// Whether route_tokens returns counts.
bool counts_sequences(const RoutingRule& rule, const Context& context);
// Returns the routing rule with which the gradients of this rank's tokens are computed.
RoutingRule rule_of_tokens(RoutingRule rule, const Tensor& counts, const Context& context);

}  // namespace chorale
