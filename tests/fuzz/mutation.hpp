// Deterministic mutations: the same seeds and the same random state always give the same bytes.
#pragma once
#include <random>
#include <span>
#include <string>

namespace chorale::test {

// One of the inputs, changed at one to five places: flipped bits, other bytes, pieces that are removed, repeated, moved or
// taken from another input, a cut end, numbers replaced by extreme ones.
std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance);

}  // namespace chorale::test
