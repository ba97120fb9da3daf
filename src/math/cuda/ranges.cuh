// Processes ranges of many tensors in one launch. The list of ranges is a kernel argument, in which each block looks up the
// range that it processes:
//
//   ranges   │ a ··········· │ b ··· │ c · │        blocks   0 1 2 │ 3 │ 4        first_block   0, 3, 4
//
// Kernel arguments have at most 4 KiB, so a long list takes several launches. The 148 parameters of GPT-2 take five
// launches.
#pragma once
#include <algorithm>
#include <span>

#include "src/math/cuda/launch.cuh"

namespace chorale::cuda {

// A Range must have a member `count`, its number of elements.
template <class Range>
struct Ranges {
  static constexpr int most = 3968 / static_cast<int>(sizeof(Range) + sizeof(unsigned));
  int count = 0;
  unsigned first_block[most] = {};
  Range all[most] = {};

  __device__ int of_block(unsigned block) const {
    int low = 0, high = count;  // first_block[low] ≤ block < first_block[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_block[middle] <= block ? low : high) = middle;
    }
    return low;
  }
};

// Splits the ranges into lists and calls f(list, blocks) for each list. `blocks` is the number of blocks that the list
// needs. A block processes up to `per_block` elements of one range.
template <class Range, class F>
void each_list(std::span<const Range> ranges, std::int64_t per_block, F f) {
  while (!ranges.empty()) {
    Ranges<Range> list;
    std::int64_t blocks = 0;
    for (const Range& range : ranges.first(std::min<std::size_t>(ranges.size(), list.most))) {
      list.first_block[list.count] = static_cast<unsigned>(blocks);
      list.all[list.count++] = range;
      blocks += quotient_up(range.count, per_block);
    }
    f(list, blocks);
    ranges = ranges.subspan(static_cast<std::size_t>(list.count));
  }
}

}  // namespace chorale::cuda
