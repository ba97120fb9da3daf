// Keys in ascending order, by CUB's radix sort. This function is all that the rest knows of it; the tests have another behind the same header.
#pragma once
#include <cstdint>

#include "src/math/queue.hpp"

namespace chorale::cuda {

// By bits 32 … 32 + bits − 1 alone; keys that are the same there stay in their order.
void sort_upper(const std::uint64_t* keys, std::int64_t count, int bits, std::uint64_t* sorted, const Queue& queue);

}  // namespace chorale::cuda
