// Ascending radix sort of keys by CUB, and a search in sorted keys. Only sort_upper uses CUB. The tests implement sort_upper
// without CUB.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "src/math/queue.hpp"

namespace chorale::cuda {

// Sorts the keys by `bits` of their bits, starting at bit 32. The sort is stable.
void sort_upper(const std::uint64_t* keys, std::int64_t count, int bits, std::uint64_t* sorted, const Queue& queue);

// Returns the index of the first key in [from, to) that is at least `key`. The keys are in ascending order.
__device__ inline std::int64_t first_at_least(const std::uint64_t* sorted, std::int64_t from, std::int64_t to,
                                              std::uint64_t key) {
  while (from < to) {
    const std::int64_t middle = (from + to) / 2;
    if (sorted[middle] < key)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

}  // namespace chorale::cuda
