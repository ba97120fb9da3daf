// Deterministic mutations: the same seeds and the same random state always give the same bytes.
#pragma once
#include <random>
#include <span>
#include <string>

namespace chorale::test {

// Returns one of the inputs, changed at one to five places. A change flips bits, replaces bytes, cuts off the end, or
// replaces a number by an extreme one. Or it removes, repeats or moves a piece, or takes one from another input.
std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance);

}  // namespace chorale::test
