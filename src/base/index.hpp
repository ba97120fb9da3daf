// Converts an index to std::size_t, because ranks, steps and counts are signed and the subscripts of the standard library
// are not.
#pragma once
#include <concepts>
#include <cstddef>

namespace chorale {

constexpr std::size_t index(std::integral auto i) { return static_cast<std::size_t>(i); }

}  // namespace chorale
