// The sort of src/math/cuda/sort.cuh, implemented with std::stable_sort instead of CUB.
#include "src/math/cuda/sort.cuh"

#include <algorithm>

#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace chorale::cuda {

void sort_upper(const std::uint64_t* keys, std::int64_t count, int bits, std::uint64_t* sorted, const Queue&) {
  emulation::advance();
  const emulation::Open open;
  const auto upper = [bits](std::uint64_t key) { return (key >> 32) & ((std::uint64_t{1} << bits) - 1); };
  std::copy(keys, keys + count, sorted);
  std::stable_sort(sorted, sorted + count, [&](std::uint64_t a, std::uint64_t b) { return upper(a) < upper(b); });
}

}  // namespace chorale::cuda
