// Exact sums of single values on a device, as on the host (src/math/exact/sums.cpp). Each addend is rounded separately.
// Integers are added with atomics, because their order does not matter.
//
//   columns   a thread sums 64 rows of a column, then does one atomic addition
//   rows      a block sums a row in registers and shared memory
//
// The kernels are memory-bound. Column sums read 4 bytes per element. Column sums for norms read 12 bytes per element,
// because dy is read twice and x once. Each sum also needs one 8-byte atomic addition per 64 elements. Adding rows to a
// table takes 20 bytes of traffic per element: a read of 4 bytes, and an 8-byte atomic addition, which reads and writes.
#include "src/math/cuda/exact.cuh"
#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/launch.cuh"
#include "src/math/vector_math.hpp"

namespace chorale::cuda {
namespace {

constexpr int threads = 256;
constexpr std::int64_t chunk = 64;  // number of rows that a thread sums before its atomic addition

template <class Addend>
__global__ void sum_columns(Addend addend, std::int64_t rows, std::int64_t columns, DeviceRounding rounding,
                            std::int64_t* sums) {
  const std::int64_t tiles = (columns + threads - 1) / threads, first = blockIdx.x / tiles * chunk;
  const std::int64_t column = blockIdx.x % tiles * threads + threadIdx.x;
  Rounder rounder(rounding);
  if (column < columns) {
    std::uint64_t sum = 0;
    for (std::int64_t row = first; row < rows && row < first + chunk; ++row)
      sum += rounder.whole(addend(row, row * columns + column));
    add_whole(sums + column, sum);
  }
  rounder.report();
}

template <class Addend>
void add_sums_of_columns(Addend addend, const Tensor& of, DeviceRounding rounding, const Tensor& sums, const Queue& queue) {
  const std::int64_t rows = of.dim(0), columns = of.dim(1);
  launch(sum_columns<Addend>, {quotient_up(rows, chunk) * quotient_up(columns, threads), threads}, queue, addend, rows,
         columns, rounding, data<std::int64_t>(sums));
}

// The addends of the sums. Each call operator takes an element's row and index in the matrix, and returns the element's
// addend.
struct ValueAddend {
  const float* values;
  __device__ float operator()(std::int64_t, std::int64_t at) const { return values[at]; }
};
struct Normal {
  const float *dy, *x, *stats;
  __device__ float operator()(std::int64_t row, std::int64_t at) const {
    return dy[at] * ((x[at] - stats[2 * row]) * stats[2 * row + 1]);
  }
};
struct ExponentialAddend {
  const float *logits, *maxima;
  __device__ float operator()(std::int64_t row, std::int64_t at) const { return math::exp(logits[at] - maxima[row]); }
};

__global__ void add_to_table(const std::int32_t* ids, std::int64_t first, const float* dy, std::int64_t columns,
                             DeviceRounding rounding, std::int64_t* table, std::int64_t length) {
  const std::int64_t row = blockIdx.x, place = ids[row] - first;
  if (place < 0 || place >= length) return;
  Rounder rounder(rounding);
  for (std::int64_t j = threadIdx.x; j < columns; j += threads)
    add_whole(table + place * columns + j, rounder.whole(dy[row * columns + j]));
  rounder.report();
}

// sums[row] = Σ of the row's addends. With `onto`, sums[row] += Σ.
template <bool onto, class Addend>
__global__ void sum_rows(Addend addend, std::int64_t columns, DeviceRounding rounding, std::int64_t* sums) {
  const std::int64_t row = blockIdx.x;
  Rounder rounder(rounding);
  std::uint64_t sum = 0;
  for (std::int64_t j = threadIdx.x; j < columns; j += threads) sum += rounder.whole(addend(row, row * columns + j));
  sum = over_block(sum, Plus{});
  if (threadIdx.x == 0) sums[row] = static_cast<std::int64_t>(onto ? static_cast<std::uint64_t>(sums[row]) + sum : sum);
  rounder.report();
}

}  // namespace

void ExactKernels::add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) {
  add_sums_of_columns(ValueAddend{data<float>(dy)}, dy, rounding(site, queue), db, queue);
}

void ExactKernels::add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                      const Tensor* dshift, SumSite& site, const Queue& queue) {
  const DeviceRounding rounding = this->rounding(site, queue);
  add_sums_of_columns(Normal{data<float>(dy), data<float>(x), data<float>(stats)}, dy, rounding, dgain, queue);
  if (dshift) add_sums_of_columns(ValueAddend{data<float>(dy)}, dy, rounding, *dshift, queue);
}

void ExactKernels::add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                            const Queue& queue) {
  launch(add_to_table, {dy.dim(0), threads}, queue, data<std::int32_t>(ids), first, data<float>(dy), dy.dim(1),
         rounding(site, queue), data<std::int64_t>(table), table.dim(0));
}

void ExactKernels::sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                                    const Queue& queue) {
  launch(sum_rows<false, ExponentialAddend>, {logits.dim(0), threads}, queue,
         ExponentialAddend{data<float>(logits), data<float>(maxima)}, logits.dim(1), rounding(site, queue),
         data<std::int64_t>(sums));
}

void ExactKernels::add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) {
  launch(sum_rows<true, ValueAddend>, {1, threads}, queue, ValueAddend{data<float>(losses)}, losses.count(),
         rounding(site, queue), data<std::int64_t>(total));
}

}  // namespace chorale::cuda
