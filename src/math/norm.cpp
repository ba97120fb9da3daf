#include "src/math/norm.hpp"

#include <cmath>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/lane_sums.hpp"
#include "src/math/reference/norm.hpp"

namespace chorale {
namespace {

// The variance is the mean of (x − mean)², because E[x²] − mean² would cancel for a large mean.
template <NormKind kind, class T>
void forward_row(const T* x, const T* gain, const T* shift, float epsilon, T* y, float* stats, std::int64_t width) {
  const auto count = static_cast<float>(width);
  float mean = 0;
  if constexpr (kind == NormKind::layer)
    mean = lane_sums<1>(width, [&](std::int64_t j) { return std::array{static_cast<float>(x[j])}; })[0] / count;
  const auto squares = lane_sums<1>(width, [&](std::int64_t j) {
    const float off = static_cast<float>(x[j]) - mean;
    return std::array{off * off};
  });
  const float rstd = 1.0f / std::sqrt(squares[0] / count + epsilon);
  const auto scaled = [&](std::int64_t j) { return (static_cast<float>(x[j]) - mean) * rstd * static_cast<float>(gain[j]); };
  if (shift) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = static_cast<T>(scaled(j) + static_cast<float>(shift[j]));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) y[j] = static_cast<T>(scaled(j));
  }
  stats[0] = mean;
  stats[1] = rstd;
}

template <NormKind kind, class T>
void backward_row(const T* dy, const T* x, const T* gain, const float* stats, const T* added, T* dx, std::int64_t width) {
  const auto count = static_cast<float>(width);
  const float mean = stats[0], rstd = stats[1];
  const auto slope = [&](std::int64_t j) { return static_cast<float>(dy[j]) * static_cast<float>(gain[j]); };
  const auto normal = [&](std::int64_t j) { return (static_cast<float>(x[j]) - mean) * rstd; };
  const auto sums = lane_sums<2>(width, [&](std::int64_t j) { return std::array{slope(j) * normal(j), slope(j)}; });
  const float along = sums[0] / count, level = kind == NormKind::layer ? sums[1] / count : 0.0f;
  const auto gradient = [&](std::int64_t j) { return rstd * (slope(j) - level - normal(j) * along); };
  if (added) {  // each element is read before it is written, so dx can be `added`
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) dx[j] = static_cast<T>(static_cast<float>(added[j]) + gradient(j));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) dx[j] = static_cast<T>(gradient(j));
  }
}

void check(const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& stats) {
  require(x.shape().size() == 2 && y.shape() == x.shape() && y.dtype() == x.dtype(),
          "a norm expects two tensors of the same shape and type, got {} of {} and {} of {}", to_string(x.shape()),
          name_of(x.dtype()), to_string(y.shape()), name_of(y.dtype()));
  require(gain.count() == x.dim(1) && gain.dtype() == x.dtype(),
          "a norm of rows of {} {} needs as many gains of the same type, got {} {}", x.dim(1), name_of(x.dtype()),
          gain.count(), name_of(gain.dtype()));
  require(stats.count() == 2 * x.dim(0) && stats.dtype() == statistic_of(x.dtype()),
          "a norm of {} rows needs 2 statistics in {} per row, got {} {}", x.dim(0), name_of(statistic_of(x.dtype())),
          stats.count(), name_of(stats.dtype()));
}

// Calls f with the kind as a compile-time constant, so that each kind gets its own loops.
template <class F>
void with_kind(NormKind kind, F&& f) {
  if (kind == NormKind::layer) return f(std::integral_constant<NormKind, NormKind::layer>{});
  f(std::integral_constant<NormKind, NormKind::rms>{});
}

}  // namespace

void norm_forward(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor* shift, double epsilon, const Tensor& y,
                  const Tensor& stats, const Queue& queue) {
  check(x, gain, y, stats);
  require(!shift || (shift->count() == gain.count() && shift->dtype() == gain.dtype()),
          "a norm of rows of {} needs as many shifts, of the type of the gains; got {} shifts", gain.count(),
          shift ? shift->count() : 0);
  const Kernel kernel(queue, "norm", x, gain, y, stats, shift);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->norm_forward(kind, x, gain, shift, epsilon, y, stats, queue);
  const std::int64_t width = x.dim(1);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *in = x.values<T>().data(), *g = gain.values<T>().data(), *s = values_or_null<T>(shift);
    T* out = y.values<T>().data();
    auto* kept = stats.values<Statistic<T>>().data();
    parallel_for(queue.threads, x.dim(0), [&](std::int64_t first, std::int64_t last) {
      if constexpr (std::same_as<T, double>)
        reference::norm_forward(kind, in + first * width, g, s, epsilon, out + first * width, kept + 2 * first, last - first,
                                width);
      else
        with_kind(kind, [&](auto constant) {
          for (std::int64_t row = first; row < last; ++row)
            forward_row<constant()>(in + row * width, g, s, static_cast<float>(epsilon), out + row * width, kept + 2 * row,
                                    width);
        });
    });
  });
}

void norm_backward(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& stats,
                   const Tensor* added, const Tensor& dx, const Queue& queue) {
  check(x, gain, dx, stats);
  check(x, gain, dy, stats);
  require(!added || (added->shape() == x.shape() && added->dtype() == x.dtype()),
          "the tensor added to a gradient {} must have the gradient's type and shape, but has the shape {} or another type",
          to_string(x.shape()), added ? to_string(added->shape()) : "");
  const Kernel kernel(queue, "gradient of norm", dy, x, gain, stats, dx, added);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->norm_backward(kind, dy, x, gain, stats, added, dx, queue);
  const std::int64_t width = x.dim(1);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *above = dy.values<T>().data(), *in = x.values<T>().data(), *g = gain.values<T>().data();
    const T* around = values_or_null<T>(added);
    const auto* kept = stats.values<Statistic<T>>().data();
    T* out = dx.values<T>().data();
    parallel_for(queue.threads, x.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t at = row * width;
        const T* here = around ? around + at : nullptr;
        if constexpr (std::same_as<T, double>)
          reference::norm_backward(kind, above + at, in + at, g, kept + 2 * row, here, out + at, 1, width);
        else
          with_kind(kind, [&](auto constant) {
            backward_row<constant()>(above + at, in + at, g, kept + 2 * row, here, out + at, width);
          });
      }
    });
  });
}

}  // namespace chorale
