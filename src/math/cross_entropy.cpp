#include "src/math/cross_entropy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/cross_entropy.hpp"
#include "src/math/vector_math.hpp"

namespace chorale {
namespace {

// Maps floats to integers that have the same order, with NaN above all other values. An integer maximum does not depend on
// the search order. A float maximum depends on the search order if there are NaNs or zeros of both signs.
template <class T>
Statistic<T> row_maximum(const T* x, std::int64_t columns) {
  using Wide = Statistic<T>;
  using Key = std::conditional_t<sizeof(Wide) == 8, std::int64_t, std::int32_t>;
  constexpr Key all = std::numeric_limits<Key>::max();
  const auto swapped = [](Key bits) { return bits < 0 ? bits ^ all : bits; };
  const auto key = [&](T number) {
    const auto value = static_cast<Wide>(number);
    return value == value ? swapped(std::bit_cast<Key>(value)) : all;
  };
  constexpr std::int64_t lanes = 32;
  Key greatest[lanes];
  std::fill_n(greatest, lanes, std::numeric_limits<Key>::min());
  std::int64_t j = 0;
  for (; j + lanes <= columns; j += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) greatest[lane] = std::max(greatest[lane], key(x[j + lane]));
  for (; j < columns; ++j) greatest[0] = std::max(greatest[0], key(x[j]));
  return std::bit_cast<Wide>(swapped(*std::max_element(greatest, greatest + lanes)));
}

double natural_log(double x) { return std::log(x); }
float natural_log(float x) { return math::log(x); }

// First computes the complete row as if it did not contain the target. Then recomputes the target's element from its logit
// (`hit`).
template <class T>
void row_gradient(T* x, float maximum, float sum, std::int64_t columns, std::int64_t target, float scale) {
  const float share = scale / sum;
  const bool here = target >= 0 && target < columns;
  const float hit = here ? static_cast<float>(x[target]) : 0.0f;
  for (std::int64_t j = 0; j < columns; ++j) x[j] = static_cast<T>(math::exp(static_cast<float>(x[j]) - maximum) * share);
  if (here) x[target] = static_cast<T>(__builtin_fmaf(math::exp(hit - maximum), share, -scale));
}

void check_rows(const Tensor& logits, const Tensor& beside, const char* what) {
  require(logits.shape().size() == 2 && beside.count() == logits.dim(0) && beside.dtype() == statistic_of(logits.dtype()),
          "logits of shape {} and type {} need {} with one element per row in {}, got {} elements in {}",
          to_string(logits.shape()), name_of(logits.dtype()), what, name_of(statistic_of(logits.dtype())), beside.count(),
          name_of(beside.dtype()));
}

void check_targets(const Tensor& targets, std::int64_t rows) {
  require(targets.count() == rows && targets.dtype() == DType::i32,
          "{} rows need one target each of type i32, got {} of type {}", rows, targets.count(), name_of(targets.dtype()));
}

}  // namespace

void row_maxima(const Tensor& logits, const Tensor& maxima, const Queue& queue) {
  check_rows(logits, maxima, "maxima");
  require(logits.dim(1) > 0, "rows without logits have no maximum");
  const Kernel kernel(queue, "maxima of logits", logits, maxima);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->row_maxima(logits, maxima, queue);
  const std::int64_t columns = logits.dim(1);
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    const T* x = logits.values<T>().data();
    auto* greatest = maxima.values<Statistic<T>>().data();
    parallel_for(queue.threads, logits.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) greatest[row] = row_maximum(x + row * columns, columns);
    });
  });
}

void target_logits(const Tensor& logits, const Tensor& targets, std::int64_t first, const Tensor& hits, const Queue& queue) {
  check_rows(logits, hits, "hits");
  check_targets(targets, logits.dim(0));
  const Kernel kernel(queue, "logits of targets", targets, hits, hits);
  if (kernel.skips() || logits.phantom()) return;  // only one logit per row is read
  if (queue.device) return queue.device->target_logits(logits, targets, first, hits, queue);
  const std::int64_t columns = logits.dim(1);
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    const T* x = logits.values<T>().data();
    const std::int32_t* wanted = targets.values<std::int32_t>().data();
    auto* hit = hits.values<Statistic<T>>().data();
    for (std::int64_t row = 0; row < logits.dim(0); ++row) {
      const std::int64_t at = wanted[row] - first;
      const bool here = wanted[row] >= 0 && at >= 0 && at < columns;
      hit[row] = here ? static_cast<Statistic<T>>(x[row * columns + at]) : 0;
    }
  });
}

void token_losses(const Tensor& maxima, const Tensor& sums, double unit, const Tensor& hits, const Tensor& targets,
                  const Tensor& losses, const Queue& queue) {
  const std::int64_t rows = losses.count();
  check_targets(targets, rows);
  require(maxima.count() == rows && sums.count() == rows && hits.count() == rows && maxima.dtype() == losses.dtype() &&
              hits.dtype() == losses.dtype() && losses.dtype() == statistic_of(losses.dtype()),
          "{} losses in {} need as many maxima, sums and hits, and maxima and hits of the same type; got {}, {} and {}",
          rows, name_of(losses.dtype()), maxima.count(), sums.count(), hits.count());
  const Kernel kernel(queue, "losses", maxima, sums, hits, targets, losses);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->token_losses(maxima, sums, unit, hits, targets, losses, queue);
  const std::int32_t* wanted = targets.values<std::int32_t>().data();
  with_gradient_type(sums.dtype(), [&]<class Sum>(Type<Sum>) {
    const Sum* sum = sums.values<Sum>().data();
    visit_floating(losses.dtype(), [&]<class T>(Type<T>) {
      if constexpr (sizeof(T) >= 4) {
        const T *maximum = maxima.values<T>().data(), *hit = hits.values<T>().data();
        T* loss = losses.values<T>().data();
        // Subtracts the target's logit from the maximum first. If the two values are close, the difference is exact.
        for (std::int64_t row = 0; row < rows; ++row) {
          const T total = static_cast<T>(static_cast<double>(sum[row]) * unit);
          loss[row] = wanted[row] < 0 ? 0 : natural_log(total) + (maximum[row] - hit[row]);
        }
      }
    });
  });
}

void cross_entropy_gradient(const Tensor& logits, const Tensor& maxima, const Tensor& sums, double unit,
                            const Tensor& targets, std::int64_t first, double scale, const Queue& queue) {
  check_rows(logits, maxima, "maxima");
  check_targets(targets, logits.dim(0));
  require(sums.count() == logits.dim(0), "{} rows of logits need as many sums, got {}", logits.dim(0), sums.count());
  const Kernel kernel(queue, "gradient of losses", logits, logits, maxima, sums, targets);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->cross_entropy_gradient(logits, maxima, sums, unit, targets, first, scale, queue);
  const std::int64_t columns = logits.dim(1);
  const std::int32_t* wanted = targets.values<std::int32_t>().data();
  with_gradient_type(sums.dtype(), [&]<class Sum>(Type<Sum>) {
    const Sum* sum = sums.values<Sum>().data();
    visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
      using Wide = Statistic<T>;
      T* x = logits.values<T>().data();
      const Wide* maximum = maxima.values<Wide>().data();
      parallel_for(queue.threads, logits.dim(0), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          T* here = x + row * columns;
          const Wide total = static_cast<Wide>(static_cast<double>(sum[row]) * unit);
          if (wanted[row] < 0)
            std::fill_n(here, columns, static_cast<T>(0.0f));
          else if constexpr (std::same_as<T, double>)
            reference::cross_entropy_gradient(here, maximum[row], total, columns, wanted[row] - first, scale);
          else
            row_gradient(here, maximum[row], total, columns, wanted[row] - first, static_cast<float>(scale));
        }
      });
    });
  });
}

}  // namespace chorale
