#include "src/math/dropout.hpp"

#include <algorithm>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/dropout.hpp"

namespace chorale {
namespace {

constexpr std::int64_t piece = 256;  // elements per block; the factors of a block stay in the L1 cache

// Writes the factors of the elements, starting at the global index `place`. A factor is the scale or 0. A dropped NaN stays
// a NaN.
void draw_factors(const Dropout& dropout, std::int64_t place, float* factors, std::int64_t count) {
  std::uint32_t bits[piece];
  dropout.random.fill_bits(static_cast<std::uint64_t>(place), {bits, static_cast<std::size_t>(count)});
  const float scale = dropout.scale();
  for (std::int64_t j = 0; j < count; ++j) factors[j] = dropout.keeps(bits[j]) ? scale : 0.0f;
}

// Each element is read before it is written, so `y` can be the same array as `x` or `residual`. The pragma `ivdep` is
// therefore valid. An FMA scales an element and adds the residual with a single rounding.
template <class T>
void apply(const T* x, const T* bias, const float* factors, const T* residual, T* y, std::int64_t count) {
  const auto value = [&](std::int64_t j) { return static_cast<float>(x[j]); };
  const auto rest = [&](std::int64_t j) { return static_cast<float>(residual[j]); };
  if (!residual) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j) y[j] = static_cast<T>(value(j) * factors[j]);
  } else if (!bias) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j) y[j] = static_cast<T>(__builtin_fmaf(value(j), factors[j], rest(j)));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j)
      y[j] = static_cast<T>(__builtin_fmaf(value(j) + static_cast<float>(bias[j]), factors[j], rest(j)));
  }
}

template <class T>
void drop_rows(const T* x, const T* bias, const Dropout& dropout, const T* residual, T* y, std::int64_t width,
               std::int64_t first, std::int64_t last) {
  float factors[piece];
  std::fill_n(factors, piece, 1.0f);
  for (std::int64_t row = first; row < last; ++row)
    for (std::int64_t j = 0; j < width; j += piece) {
      const std::int64_t at = row * width + j, count = std::min(piece, width - j);
      if (dropout.probability > 0) draw_factors(dropout, dropout.tokens.global(row) * width + j, factors, count);
      apply(x + at, bias ? bias + j : nullptr, factors, residual ? residual + at : nullptr, y + at, count);
    }
}

void run(const Tensor& x, const Tensor* bias, const Dropout& dropout, const Tensor* residual, const Tensor& y,
         const Queue& queue) {
  require(dropout.probability >= 0 && dropout.probability < 1, "the dropout probability {} is not in [0, 1)",
          dropout.probability);
  require(x.shape().size() == 2 && y.shape() == x.shape() && y.dtype() == x.dtype(),
          "dropout expects x and y of the same shape and type, got {} of {} and {} of {}", to_string(x.shape()),
          name_of(x.dtype()), to_string(y.shape()), name_of(y.dtype()));
  require(!residual || (residual->shape() == x.shape() && residual->dtype() == x.dtype()),
          "the residual must have the shape {} and the type of x", to_string(x.shape()));
  require(!bias || (bias->count() == x.dim(1) && bias->dtype() == x.dtype()),
          "the bias must have one element per column of x {}, and the type of x", to_string(x.shape()));
  const Kernel kernel(queue, residual ? "bias, dropout and residual" : "dropout", x, y, bias, residual);
  if (kernel.skips()) return;
  if (queue.device)
    return residual ? queue.device->add_residual(x, bias, dropout, *residual, y, queue)
                    : queue.device->dropout(x, dropout, y, queue);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *in = x.values<T>().data(), *b = values_or_null<T>(bias), *around = values_or_null<T>(residual);
    T* out = y.values<T>().data();
    parallel_for(queue.threads, x.dim(0), [&](std::int64_t first, std::int64_t last) {
      if constexpr (std::same_as<T, double>)
        reference::dropout(in, b, dropout, around, out, x.dim(1), first, last);
      else
        drop_rows(in, b, dropout, around, out, x.dim(1), first, last);
    });
  });
}

}  // namespace

void dropout(const Tensor& x, const Dropout& dropout, const Tensor& y, const Queue& queue) {
  run(x, nullptr, dropout, nullptr, y, queue);
}

void add_residual(const Tensor& x, const Tensor* bias, const Dropout& dropout, const Tensor& residual, const Tensor& y,
                  const Queue& queue) {
  run(x, bias, dropout, &residual, y, queue);
}

}  // namespace chorale
