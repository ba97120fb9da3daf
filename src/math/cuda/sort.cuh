// Ascending radix sort of keys by CUB. Only this function uses CUB; the tests implement the same header without it.
#pragma once
#include <cstdint>

#include "src/math/queue.hpp"

namespace chorale::cuda {

// Sorts by bits 32 … 32 + bits − 1 only. The sort is stable.
void sort_upper(const std::uint64_t* keys, std::int64_t count, int bits, std::uint64_t* sorted, const Queue& queue);

}  // namespace chorale::cuda
