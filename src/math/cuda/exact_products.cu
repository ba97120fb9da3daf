// Products as chains on a device. One thread computes each element as one sequence of fused multiply-adds over ascending k,
// starting from zero. The sequence is never split, so an element depends bit for bit only on its row of a and its column of
// b. The results are bit-identical to the results on the host (src/math/exact/chains.hpp).
//
//             b [16 of k][64 columns]        A block has 64 × 64 elements, 16 per thread in a square of registers.
//   a [16]   ┌──────────────────────┐        Both operands use shared memory, 16 values of k at a time. 16
//   [64]     │ 4 × 4 of each thread │        multiply-adds need 8 reads. Rows and columns outside the matrix are zeros. k
//   rows     └──────────────────────┘        past the end is skipped, because adding a zero would turn −0 into +0.
//
// The kernel needs 2·M·N·K operations and reaches at most 60 TFLOP/s in f32. Rounding an element at the end of a block costs
// about as much as 8 multiply-adds.
#include <algorithm>

#include "src/math/cuda/exact.cuh"
#include "src/math/cuda/map.cuh"

namespace chorale::cuda {
namespace {

using exact::Operands, exact::Side;

constexpr int side = 64, deep = 16, own = 4, threads = side / own * (side / own);
constexpr int stride = side + 4;  // padded, so that rows are 16-byte aligned and start in different banks

// Loads the 64 rows (or columns) of an operand that start at `first`, for the 16 values of k that start at `start`. Adjacent
// threads load adjacent elements.
__device__ void load_side(float (&tile)[deep][stride], const Side& from, std::int64_t first, std::int64_t count,
                          std::int64_t start, int length) {
  for (int e = static_cast<int>(threadIdx.x); e < side * deep; e += threads) {
    const int i = from.along == 1 ? e % side : e / deep, k = from.along == 1 ? e / side : e % deep;
    const bool inside = first + i < count && k < length;
    tile[k][i] = inside ? from.data[(first + i) * from.along + (start + k) * from.across] : 0.0f;
  }
}

// The elements of one thread.
struct Corner {
  std::int64_t block_row, block_column;
  int row, column;  // within the block

  __device__ explicit Corner(const Operands& of) {
    const std::int64_t across = (of.columns + side - 1) / side;
    block_row = blockIdx.x / across * side;
    block_column = blockIdx.x % across * side;
    row = static_cast<int>(threadIdx.x) / (side / own) * own;
    column = static_cast<int>(threadIdx.x) % (side / own) * own;
  }
  // Calls f(i, j, row, column) for the thread's elements inside the matrix.
  template <class F>
  __device__ void each(const Operands& of, F f) const {
#pragma unroll
    for (int i = 0; i < own; ++i)
#pragma unroll
      for (int j = 0; j < own; ++j) {
        const std::int64_t r = block_row + row + i, c = block_column + column + j;
        if (r < of.rows && c < of.columns) f(i, j, r, c);
      }
  }
};

// Computes chain = a·b over `length` values of k starting at `start`.
__device__ void multiply(const Operands& of, const Corner& at, std::int64_t start, std::int64_t length,
                         float (&chain)[own][own]) {
  alignas(16) __shared__ float a[deep][stride];
  alignas(16) __shared__ float b[deep][stride];
  for (auto& row : chain)
    for (float& element : row) element = 0;
  for (std::int64_t k = 0; k < length; k += deep) {
    const int here = length - k < deep ? static_cast<int>(length - k) : deep;
    __syncthreads();  // waits for threads that still read the previous tiles
    load_side(a, of.a, at.block_row, of.rows, start + k, here);
    load_side(b, of.b, at.block_column, of.columns, start + k, here);
    __syncthreads();
    for (int l = 0; l < here; ++l) {
      const auto left = load<own>(&a[l][at.row]), right = load<own>(&b[l][at.column]);
#pragma unroll
      for (int i = 0; i < own; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j) chain[i][j] = fmaf(left.values[i], right.values[j], chain[i][j]);
    }
  }
}

__global__ void __launch_bounds__(threads) multiply_whole(Operands of, const float* bias, float* y) {
  const Corner at(of);
  float chain[own][own];
  multiply(of, at, 0, of.depth, chain);
  at.each(of, [&](int i, int j, std::int64_t row, std::int64_t column) {
    y[row * of.columns + column] = bias ? chain[i][j] + bias[column] : chain[i][j];
  });
}

// The lengths of blocks, as a kernel argument. It holds only some of the blocks, because kernel arguments have at most 4
// KiB.
struct BlockLengths {
  static constexpr int most = 960;
  int count = 0;
  std::int32_t lengths[most] = {};
};

template <bool onto>
__global__ void __launch_bounds__(threads)
    multiply_blocks(Operands of, const __grid_constant__ BlockLengths blocks, DeviceRounding rounding, std::int64_t* y) {
  const Corner at(of);
  Rounder rounder(rounding);
  float chain[own][own];
  std::uint64_t sums[own][own] = {};
  std::int64_t start = 0;
  for (int i = 0; i < blocks.count; ++i) {
    multiply(of, at, start, blocks.lengths[i], chain);
    start += blocks.lengths[i];
    at.each(of, [&](int i, int j, std::int64_t, std::int64_t) { sums[i][j] += rounder.whole(chain[i][j]); });
  }
  at.each(of, [&](int i, int j, std::int64_t row, std::int64_t column) {
    std::int64_t& sum = y[row * of.columns + column];
    sum = static_cast<std::int64_t>(onto ? static_cast<std::uint64_t>(sum) + sums[i][j] : sums[i][j]);
  });
  rounder.report();
}

Grid grid_of(const Operands& of) { return {quotient_up(of.rows, side) * quotient_up(of.columns, side), threads}; }

struct Settled {
  float unit;
  __device__ float operator()(std::int64_t, std::int64_t sum) const { return static_cast<float>(sum) * unit; }
};

}  // namespace

void ExactKernels::product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) {
  launch(multiply_whole, grid_of(operands), queue, operands, data<float>(bias), data<float>(y));
}

void ExactKernels::sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto, const Tensor& sums,
                              SumSite& site, const Queue& queue) {
  Operands part = operands;
  while (!blocks.empty()) {
    BlockLengths list;
    list.count = static_cast<int>(std::min<std::size_t>(blocks.size(), BlockLengths::most));
    std::int64_t depth = 0;
    for (int i = 0; i < list.count; ++i) {
      depth += blocks[static_cast<std::size_t>(i)];
      list.lengths[i] = static_cast<std::int32_t>(blocks[static_cast<std::size_t>(i)]);
    }
    launch(onto ? multiply_blocks<true> : multiply_blocks<false>, grid_of(part), queue, part, list, rounding(site, queue),
           data<std::int64_t>(sums));
    part.a.data += depth * part.a.across;
    part.b.data += depth * part.b.across;
    blocks = blocks.subspan(static_cast<std::size_t>(list.count));
    onto = true;
  }
}

void ExactKernels::settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) {
  map(queue, Settled{unit}, y.count(), data<float>(y), static_cast<const std::int64_t*>(data<std::int64_t>(partial)));
}

}  // namespace chorale::cuda
