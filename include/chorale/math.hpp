// Choices of the mathematics that do not depend on the shape of a model.
#pragma once
#include <cstdint>

#include <chorale/named.hpp>

namespace chorale {

// How sums over tokens, shards and ranks are computed. fast: in floats. exact: in integers, so that results are
// bit-identical on every layout (docs/architecture/numerics.md).
enum class NumericsKind : std::uint8_t { fast, exact };
constexpr auto names_of(NumericsKind) { return Names{"kind of numerics", "fast", "exact"}; }

// A routing that depends on a token's position instead of the router's scores, for measurements with a known load of each
// expert. balanced: all experts get the same number of tokens. uniform: experts are drawn at random. zipf: a few experts get
// most tokens. one: every token chooses the same experts.
enum class ForcedRouting : std::uint8_t { balanced, uniform, zipf, one };
constexpr auto names_of(ForcedRouting) { return Names{"routing", "balanced", "uniform", "zipf", "one"}; }

}  // namespace chorale
