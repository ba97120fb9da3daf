// Deterministic mutations. The same inputs and the same random state always give the same bytes.
#pragma once
#include <random>
#include <span>
#include <string>

namespace chorale::test {

// Returns one of the inputs after one to five changes. A change flips bits, replaces bytes, truncates the input, or replaces
// a number by an extreme number. A change can also remove, repeat or move a range of bytes, or copy a range of bytes from a
// different input.
std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance);

}  // namespace chorale::test
