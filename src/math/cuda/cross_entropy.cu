// Cross entropy on a device, over this rank's part of the vocabulary. A kernel that reads complete rows of logits uses one
// block per row. All other kernels use one thread per row. The threads of a block add their partial sums in a fixed order,
// so the sum of a row is bit-identical in every run.
//
// The kernels are memory-bound: the maxima, the sums and the gradient each read all logits, and the gradient also writes the
// logits. In bf16, this traffic is 8 bytes per logit. For [16384, 50304], the traffic is 6.6 GB, which takes 1.4 ms at 4.8
// TB/s. A single pass for maxima and sums would save a quarter. However, the ranks must agree on the maxima before they
// compute the sums.
#include "src/math/cross_entropy.hpp"

#include <cmath>
#include <limits>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {
namespace {

constexpr int threads = 512, few = 256;  // block sizes of kernels with one block per row, and with one thread per row

template <int width, class T, class F>
__device__ void each_of_row(const T* row, std::int64_t columns, F f) {
  for (std::int64_t j = threadIdx.x * width; j < columns; j += blockDim.x * width) {
    const auto pack = load<width>(row + j);
#pragma unroll
    for (int i = 0; i < width; ++i) f(widened(pack.values[i]));
  }
}

// The maximum does not depend on the order: NaN is the greatest value, and 0 is greater than −0. The host uses the same
// order.
struct GreaterOrNan {
  __device__ float operator()(float a, float b) const { return greater_or_nan(a, b); }
  __device__ double operator()(double a, double b) const {
    if (a != a || b != b) return std::numeric_limits<double>::quiet_NaN();
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};

template <class T, int width>
__global__ void maxima_of_rows(const T* logits, std::int64_t columns, Statistic<T>* maxima) {
  using W = Statistic<T>;
  W highest = -std::numeric_limits<W>::infinity();
  each_of_row<width>(logits + blockIdx.x * columns, columns, [&](W value) { highest = GreaterOrNan{}(highest, value); });
  highest = over_block(highest, GreaterOrNan{});
  if (threadIdx.x == 0) maxima[blockIdx.x] = highest;
}

template <class T, int width>
__global__ void exponentials_of_rows(const T* logits, std::int64_t columns, const Statistic<T>* maxima, Statistic<T>* sums) {
  using W = Statistic<T>;
  const W highest = maxima[blockIdx.x];
  W sum = 0;
  each_of_row<width>(logits + blockIdx.x * columns, columns, [&](W value) { sum += exponential<T>(value - highest); });
  sum = over_block(sum, Plus{});
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class T>
__global__ void hits_of_rows(const T* logits, std::int64_t rows, std::int64_t columns, const std::int32_t* targets,
                             std::int64_t first, Statistic<T>* hits) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const std::int64_t at = targets[row] - first;
  const bool here = targets[row] >= 0 && at >= 0 && at < columns;
  hits[row] = here ? widened(logits[row * columns + at]) : Statistic<T>(0);
}

template <class W, class Sum>
__global__ void losses_of_rows(const W* maxima, const Sum* sums, double unit, const W* hits, const std::int32_t* targets,
                               std::int64_t rows, W* losses) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const W total = static_cast<W>(static_cast<double>(sums[row]) * unit);
  losses[row] = targets[row] < 0 ? W(0) : logarithm(total) + (maxima[row] - hits[row]);
}

template <class T, class Sum, int width>
__global__ void gradient_of_rows(T* logits, std::int64_t columns, const Statistic<T>* maxima, const Sum* sums, double unit,
                                 const std::int32_t* targets, std::int64_t first, Statistic<T> scale) {
  using W = Statistic<T>;
  T* row = logits + blockIdx.x * columns;
  const W highest = maxima[blockIdx.x], share = scale / static_cast<W>(static_cast<double>(sums[blockIdx.x]) * unit);
  const bool masked = targets[blockIdx.x] < 0;
  const std::int64_t target = targets[blockIdx.x] - first;
  for (std::int64_t j = threadIdx.x * width; j < columns; j += blockDim.x * width) {
    auto pack = load<width>(row + j);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const W power = exponential<T>(widened(pack.values[i]) - highest);
      const W gradient = j + i == target ? fused(power, share, -scale) : power * share;
      pack.values[i] = rounded<T>(masked ? W(0) : gradient);
    }
    store<width>(row + j, pack);
  }
}

// Calls f(type, width) for rows of logits.
template <class F>
void with_rows(const Tensor& logits, F&& f) {
  visit_floating(logits.dtype(), [&]<class T>(Type<T> type) {
    with_packs(type, aligned(data<T>(logits)) && logits.dim(1) * sizeof(T) % 16 == 0, [&](auto width) { f(type, width); });
  });
}

}  // namespace

void row_maxima(const Tensor& logits, const Tensor& maxima, const Queue& queue) {
  with_rows(logits, [&]<class T>(Type<T>, auto width) {
    launch(maxima_of_rows<T, width()>, {logits.dim(0), threads}, queue, data<T>(logits), logits.dim(1),
           data<Statistic<T>>(maxima));
  });
}

void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Queue& queue) {
  with_rows(logits, [&]<class T>(Type<T>, auto width) {
    launch(exponentials_of_rows<T, width()>, {logits.dim(0), threads}, queue, data<T>(logits), logits.dim(1),
           data<Statistic<T>>(maxima), data<Statistic<T>>(sums));
  });
}

void target_logits(const Tensor& logits, const Tensor& targets, std::int64_t first, const Tensor& hits, const Queue& queue) {
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    launch(hits_of_rows<T>, {quotient_up(logits.dim(0), few), few}, queue, data<T>(logits), logits.dim(0), logits.dim(1),
           data<std::int32_t>(targets), first, data<Statistic<T>>(hits));
  });
}

void token_losses(const Tensor& maxima, const Tensor& sums, double unit, const Tensor& hits, const Tensor& targets,
                  const Tensor& losses, const Queue& queue) {
  with_gradient_type(sums.dtype(), [&]<class Sum>(Type<Sum>) {
    const auto run = [&]<class W>(Type<W>) {
      launch(losses_of_rows<W, Sum>, {quotient_up(losses.count(), few), few}, queue, data<W>(maxima), data<Sum>(sums), unit,
             data<W>(hits), data<std::int32_t>(targets), losses.count(), data<W>(losses));
    };
    if (losses.dtype() == DType::f64)
      run(Type<double>{});
    else
      run(Type<float>{});
  });
}

void cross_entropy_gradient(const Tensor& logits, const Tensor& maxima, const Tensor& sums, double unit,
                            const Tensor& targets, std::int64_t first, double scale, const Queue& queue) {
  with_gradient_type(sums.dtype(), [&]<class Sum>(Type<Sum>) {
    with_rows(logits, [&]<class T>(Type<T>, auto width) {
      launch(gradient_of_rows<T, Sum, width()>, {logits.dim(0), threads}, queue, data<T>(logits), logits.dim(1),
             data<Statistic<T>>(maxima), data<Sum>(sums), unit, data<std::int32_t>(targets), first, scale);
    });
  });
}

}  // namespace chorale::cuda
