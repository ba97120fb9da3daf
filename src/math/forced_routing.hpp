// In a forced routing, the experts of a token depend on its position, not on the router's scores. The load of each expert is
// then known. Layouts can therefore be measured under a known load, and a plan can count every row that ranks exchange. The
// weights of the chosen experts, and all gradients, are still computed from the router's logits.
//
//   balanced   the choices of a sequence's tokens, in order, are the experts 0, 1, … E − 1, 0, 1, …
//   uniform    k different experts are drawn at random
//   zipf       experts are drawn, but expert e is 1/(e + 1) times as probable as expert 0: a few experts get most rows
//   one        every token chooses the experts 0 … k − 1, which is the worst case
//
// The draws depend only on the block and the position. Each sequence of every step therefore has the same choices on every
// layout. Groups of experts (RoutingRule::groups) do not limit forced choices.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/math.hpp>

namespace chorale {

struct RoutingRule;

inline constexpr const char* learned_routing = "learned";  // the router chooses

// Returns the experts [s,k] of the positions of a sequence, ascending within a position. The cost per position is k
// operations for `balanced` or `one`. For `uniform` or `zipf`, the cost is E random numbers, E logarithms and a partial
// sort.
std::vector<std::int32_t> forced_choices(ForcedRouting routing, const RoutingRule& rule, std::int64_t block);

}  // namespace chorale
