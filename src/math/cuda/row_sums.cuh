// A warp's loop over one row, in which each lane processes every 32nd pack (16-byte vector). All lanes get the sum.
//
// For f32, a sum has the same lanes and the same order as on the host (src/math/lane_sums.hpp), so the results are
// bit-identical. For 16-bit types, each lane adds complete packs.
#pragma once
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {

// Calls f(index in the row) for each vector (pack) that this lane processes.
template <int width, class F>
__device__ void each_pack_of_lane(std::int64_t columns, F f) {
  for (std::int64_t j = threadIdx.x % warp * width; j < columns; j += warp * width) f(j);
}

template <int width, class W, class Term, class... Packs>
__device__ void add_terms(W& sum, Term term, const Packs&... packs) {
#pragma unroll
  for (int i = 0; i < width; ++i) sum += term(widened(packs.values[i])...);
}

// Returns the sum of term(row[j], more[j]…) over the columns j. For 32- and 64-bit types, lane l adds the columns l, l + 32,
// …
template <int width, class Term, class T, class... More>
__device__ Statistic<T> sum_of_row(std::int64_t columns, Term term, const T* row, const More*... more) {
  Statistic<T> sum = 0;
  if constexpr (sizeof(T) == 2)
    each_pack_of_lane<width>(
        columns, [&](std::int64_t j) { add_terms<width>(sum, term, load<width>(row + j), load<width>(more + j)...); });
  else
    for (std::int64_t j = threadIdx.x % warp; j < columns; j += warp) sum += term(row[j], more[j]...);
  return over_warp(sum, Plus{});
}

}  // namespace chorale::cuda
