// Deterministic mutations of inputs. The same inputs and the same state of the random generator always give the same bytes.
#pragma once
#include <random>
#include <span>
#include <string>

namespace chorale::test {

// Applies one to five changes to one of the inputs, and returns the result. A change flips bits, replaces bytes, truncates
// the input, or replaces a number by a special value, such as 0 or the largest integer. A change can also remove, repeat or
// move a range of bytes, or copy a range of bytes from another input.
std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance);

}  // namespace chorale::test
