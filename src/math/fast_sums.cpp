#include "src/math/fast_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "src/base/parallel.hpp"
#include "src/math/column_sums.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/sums.hpp"
#include "src/math/vector_math.hpp"

namespace chorale {
namespace {

// The number of partial sums, which are added in order at the end. The number is fixed, so results do not depend on the
// machine's vector width.
constexpr std::int64_t lanes = 16;

template <class Sum, class Addend>
Sum sum_in_lanes(std::int64_t count, Addend addend) {
  Sum sums[lanes] = {};
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += addend(i + lane);
  for (std::int64_t i = whole; i < count; ++i) sums[i - whole] += addend(i);
  Sum total = 0;
  for (const Sum sum : sums) total += sum;
  return total;
}

// Returns Σ exp(line[j] − maximum). The terms are computed block by block in a separate loop, because GCC fully vectorizes
// conversions from 16-bit types only in a plain loop.
template <class T>
float sum_row(const T* line, float maximum, std::int64_t count) {
  constexpr std::int64_t piece = 512;
  float terms[piece], sum = 0;
  for (std::int64_t from = 0; from < count; from += piece) {
    const std::int64_t here = std::min(piece, count - from);
    for (std::int64_t j = 0; j < here; ++j) terms[j] = math::exp(static_cast<float>(line[from + j]) - maximum);
    sum += sum_in_lanes<float>(here, [&](std::int64_t j) { return terms[j]; });
  }
  return sum;
}

double sum_of_squares(const ScaledSlice& gradient, const Queue& queue) {
  constexpr std::int64_t parts = 64;
  std::array<double, parts> sums{};
  const std::int64_t count = gradient.values.count;
  visit_floating(gradient.values.dtype, [&]<class T>(Type<T>) {
    parallel_for(queue.threads, parts, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t from = count * part / parts, to = count * (part + 1) / parts;
        const T* values = static_cast<const T*>(gradient.values.data) + from;
        sums[static_cast<std::size_t>(part)] = sum_in_lanes<double>(to - from, [&](std::int64_t i) {
          const double value = static_cast<double>(values[i]) * gradient.scale;
          return value * value;
        });
      }
    });
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

void FastSums::partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t, const Tensor& y, SumSite&,
                               const Queue& queue) {
  product(x, w, transposed, nullptr, y, queue);
}

void FastSums::add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                                   SumSite& site, const Queue& queue) {
  require_leaves(leaves, x.dim(0));
  if (x.dim(0) > 0) add_outer(x, dy, x.dim(0), dw, site, queue);
}

void FastSums::settle(const Tensor& partial, const Tensor& y, const SumSite& site, const Queue& queue) {
  require(partial.count() == y.count() && partial.dtype() == y.dtype(),
          "{}: a partial sum {} {} cannot be converted to {} {}", site.name, name_of(partial.dtype()),
          to_string(partial.shape()), name_of(y.dtype()), to_string(y.shape()));
  if (partial.storage() == y.storage()) return;
  const Kernel kernel(queue, "copy of sums", partial, y);
  if (kernel.skips()) return;
  const auto* from = static_cast<const std::byte*>(partial.slice().data);
  auto* to = static_cast<std::byte*>(y.slice().data);
  if (from == to) return;
  if (queue.device) return queue.device->copy(to, from, y.bytes(), queue);
  parallel_for(queue.threads, y.bytes(), [&](std::int64_t first, std::int64_t last) {
    std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
  });
}

void FastSums::add_columns(const Tensor& dy, const Tensor& db, SumSite&, const Queue& queue) {
  chorale::add_columns(dy, db, queue);
}

void FastSums::add_norm_gradients(NormKind, const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                  const Tensor* dshift, SumSite&, const Queue& queue) {
  chorale::add_norm_gradients(dy, x, stats, dgain, dshift, queue);  // also correct for an RMS norm, whose mean is 0
}

void FastSums::add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite&,
                        const Queue& queue) {
  chorale::add_rows(ids, first, dy, table, queue);
}

void FastSums::attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                  const Tensor& dqkv, const KeyRows& dkeys, std::int64_t, SumSite&, const Queue& queue) {
  chorale::attention_backward(in, dout, out, lse, dqkv, dkeys, queue);
}

void FastSums::sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite&,
                                const Queue& queue) {
  const std::int64_t rows = logits.dim(0), n = logits.dim(1);
  const DType type = gradient_type(logits.dtype());
  require(maxima.count() == rows && sums.count() == rows && maxima.dtype() == type && sums.dtype() == type,
          "the sums and maxima of {} rows have a wrong number or type: sums {} {}, maxima {} {}", rows,
          to_string(sums.shape()), name_of(sums.dtype()), to_string(maxima.shape()), name_of(maxima.dtype()));
  const Kernel kernel(queue, "sums of exponentials", logits, maxima, sums);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->sum_exponentials(logits, maxima, sums, queue);
  visit_floating(logits.dtype(), [&]<class T>(Type<T>) {
    const T* in = logits.values<T>().data();
    using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
    const Sum* highest = maxima.values<Sum>().data();
    Sum* out = sums.values<Sum>().data();
    parallel_for(queue.threads, rows, [&](std::int64_t first, std::int64_t last) {
      if constexpr (sizeof(T) == 8) {
        reference::sum_exponentials(in + first * n, highest + first, out + first, last - first, n);
      } else {
        for (std::int64_t row = first; row < last; ++row) out[row] = sum_row(in + row * n, highest[row], n);
      }
    });
  });
}

void FastSums::add_losses(const Tensor& losses, const Tensor& total, SumSite&, const Queue& queue) {
  require(total.count() == 1 && total.dtype() == DType::f64, "losses are summed into one f64, not into {} of {}",
          total.count(), name_of(total.dtype()));
  const Kernel kernel(queue, "sum of losses", losses, total);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->add_losses(losses, total, queue);
  visit_floating(losses.dtype(), [&]<class T>(Type<T>) {
    const auto values = losses.values<T>();
    total.values<double>()[0] += sum_in_lanes<double>(
        losses.count(), [&](std::int64_t i) { return static_cast<double>(values[static_cast<std::size_t>(i)]); });
  });
}

void FastSums::add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const {
  const auto is_phantom = [](const ScaledSlice& gradient) { return !gradient.values.data; };
  if (std::ranges::any_of(gradients, is_phantom)) {
    for (const ScaledSlice& gradient : gradients) {
      const auto bytes = static_cast<double>(gradient.values.bytes());
      queue.note({.work = Work::update, .amount = bytes, .bytes = bytes, .gradient = true});
    }
    return;
  }
  if (queue.device) {
    require(sum.there, "the squares of {} device gradients need a sum in device memory", gradients.size());
    return queue.device->add_squares(gradients, static_cast<double*>(sum.there), queue);
  }
  for (const ScaledSlice& gradient : gradients) {
    const Kernel kernel(queue, "norm of gradients", Kernel::on_bytes(static_cast<double>(gradient.values.bytes())), false);
    sum.fast += sum_of_squares(gradient, queue);
  }
}

double FastSums::root(const SquareSum& sum) const { return std::sqrt(sum.fast); }

}  // namespace chorale
