#include "src/math/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "src/math/kernel.hpp"
#include "src/math/vector_math.hpp"

namespace chorale {
namespace {

float exponential(float x) { return math::exp(x); }
double exponential(double x) { return std::exp(x); }
float logarithm(float x) { return math::log(x); }
double logarithm(double x) { return std::log(x); }

void check(const Tensor& logits, const Tensor& column, const char* what) {
  require(logits.shape().size() == 2 && column.count() == logits.dim(0), "{} rows of logits have no {} {}", logits.dim(0),
          column.count(), what);
}

// Rows of logits, in ranges.
template <class Row>
void each_row(const Tensor& logits, const Queue& queue, Row row) {
  parallel_for(queue.threads, logits.dim(0), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) row(r);
  });
}

// A sum of exponentials, whatever it was counted in.
double sum_of(const Tensor& sums, double unit, std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  if (sums.dtype() == DType::i64) return static_cast<double>(static_cast<float>(sums.values<std::int64_t>()[at])) * unit;
  return sums.dtype() == DType::f64 ? sums.values<double>()[at] : static_cast<double>(sums.values<float>()[at]);
}

}  // namespace

void row_maxima(const Tensor& logits, const Tensor& maxima, const Queue& queue) {
  check(logits, maxima, "maxima");
  if (any_phantom(logits, maxima)) return;
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    using S = Statistic<T>;
    constexpr std::int64_t lanes = 32;
    const T* in = logits.values<T>().data();
    S* out = maxima.values<S>().data();
    const std::int64_t columns = logits.dim(1);
    each_row(logits, queue, [&](std::int64_t row) {
      const T* z = in + row * columns;
      S most[lanes];
      std::fill(most, most + lanes, static_cast<S>(z[0]));
      std::int64_t j = 0;
      // A NaN is passed by here; it shows in the sum of exponentials.
      for (; j + lanes <= columns; j += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const S value = static_cast<S>(z[j + lane]);
          most[lane] = value > most[lane] ? value : most[lane];
        }
      for (; j < columns; ++j) most[0] = std::max(most[0], static_cast<S>(z[j]));
      out[row] = *std::max_element(most, most + lanes);
    });
  });
}

void target_logits(const Tensor& logits, const Tensor& targets, std::int64_t first, const Tensor& hits, const Queue& queue) {
  check(logits, hits, "hits");
  check(logits, targets, "targets");
  if (any_phantom(logits, targets, hits)) return;
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    using S = Statistic<T>;
    const T* in = logits.values<T>().data();
    const std::int64_t columns = logits.dim(1);
    each_row(logits, queue, [&](std::int64_t row) {
      const std::int64_t column = targets.values<std::int32_t>()[static_cast<std::size_t>(row)] - first;
      const bool here = column >= 0 && column < columns;
      hits.values<S>()[static_cast<std::size_t>(row)] = here ? static_cast<S>(in[row * columns + column]) : S(0);
    });
  });
}

void token_losses(const Tensor& maxima, const Tensor& sums, double unit, const Tensor& hits, const Tensor& targets,
                  const Tensor& losses, const Queue&) {
  require(maxima.count() == losses.count() && sums.count() == losses.count() && hits.count() == losses.count() &&
              targets.count() == losses.count(),
          "{} losses need as many maxima ({}), sums ({}), hits ({}) and targets ({})", losses.count(), maxima.count(),
          sums.count(), hits.count(), targets.count());
  if (any_phantom(maxima, sums, hits, targets, losses)) return;
  visit_floating(losses.dtype(), [&]<class S>(Type<S>) {
    if constexpr (sizeof(S) >= 4)
      for (std::int64_t row = 0; row < losses.count(); ++row) {
        const auto at = static_cast<std::size_t>(row);
        const bool counted = targets.values<std::int32_t>()[at] >= 0;
        const S log_sum = logarithm(static_cast<S>(sum_of(sums, unit, row))) + maxima.values<S>()[at];
        losses.values<S>()[at] = counted ? log_sum - hits.values<S>()[at] : S(0);
      }
  });
}

void cross_entropy_gradient(const Tensor& logits, const Tensor& maxima, const Tensor& sums, double unit,
                            const Tensor& targets, std::int64_t first, double scale, const Queue& queue) {
  check(logits, maxima, "maxima");
  check(logits, sums, "sums");
  check(logits, targets, "targets");
  if (any_phantom(logits, maxima, sums, targets)) return;
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    using S = Statistic<T>;
    T* all = logits.values<T>().data();
    const std::int64_t columns = logits.dim(1);
    each_row(logits, queue, [&](std::int64_t row) {
      const auto at = static_cast<std::size_t>(row);
      T* z = all + row * columns;
      const std::int32_t target = targets.values<std::int32_t>()[at];
      if (target < 0) return void(std::fill(z, z + columns, T(0.0f)));
      const S largest = maxima.values<S>()[at], factor = static_cast<S>(scale / sum_of(sums, unit, row));
      const std::int64_t column = target - first;
      const bool here = column >= 0 && column < columns;
      const S probability = here ? exponential(static_cast<S>(z[column]) - largest) * factor : S(0);
      for (std::int64_t j = 0; j < columns; ++j) z[j] = static_cast<T>(exponential(static_cast<S>(z[j]) - largest) * factor);
      if (here) z[column] = static_cast<T>(probability - static_cast<S>(scale));  // rounded once, as the others
    });
  });
}

}  // namespace chorale
