// Deterministic mutations. The same inputs and the same random state always give the same bytes.
#pragma once
#include <random>
#include <span>
#include <string>

namespace chorale::test {

// Returns one of the inputs, changed at one to five places. A change flips bits, replaces bytes, cuts off the end, or
// replaces a number by an extreme number. A change may also remove, repeat or move a piece, or copy a piece from a different
// input.
std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance);

}  // namespace chorale::test
