// ‖g‖², whose addends span so many powers of two that 64 bits do not hold them: q = g·2^40 to the nearest integer, and q² summed in 128 bits.
// Small elements count beside great ones, and the sum has no order.
//
// The norm may be up to 2^18. Squares are never negative, so that a sum which stops growing at its limit stops there in every order, and the
// sums of a thousand ranks still fit: `root` then refuses on every rank alike. An element that is no number counts as one above the limit.
//
// Cost: 0.5 ns an element; reads 8 bytes.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "src/math/exact/exact_numerics.hpp"
#include "src/math/exact/fixed_point.hpp"

namespace chorale::exact {
namespace {

constexpr double greatest_norm = 0x1p18, units = 0x1p40;
constexpr double greatest_element = greatest_norm * units;
constexpr __int128 greatest_sum = static_cast<__int128>(1) << 116;  // (2^18·2^40)²

template <class T>
__int128 squares(const T* gradient, std::int64_t count, double scale) {
  constexpr std::int64_t piece = 512;
  std::int64_t wholes[piece];
  __int128 sum = 0;
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t here = std::min(piece, count - first);
    for (std::int64_t i = 0; i < here; ++i) {
      const float g = static_cast<float>(static_cast<double>(gradient[first + i]) * scale);
      const double size = std::fabs(static_cast<double>(g) * units);
      const double rounded = __builtin_rint(size < greatest_element ? size : greatest_element);  // NaN is not less
      wholes[i] = static_cast<std::int64_t>(rounded);
    }
    for (std::int64_t i = 0; i < here; ++i) sum += static_cast<__int128>(wholes[i]) * wholes[i];  // below 2^126
    sum = std::min(sum, greatest_sum);
  }
  return sum;
}

}  // namespace

void ExactNumerics::add_squares(const Slice& gradient, double scale, SquareSum& sum, const Queue& queue) const {
  if (!gradient.data) return;
  std::mutex adding;
  visit(gradient.dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, float>) {
      plain_for(queue, gradient.count, [&](std::int64_t first, std::int64_t last) {
        const __int128 part = squares(static_cast<const T*>(gradient.data) + first, last - first, scale);
        const std::lock_guard lock(adding);
        sum.exact = std::min(sum.exact + part, greatest_sum);
      });
    } else {
      misuse(fmt::format("the exact norm is of sums in i64 or values in f32, not {}", name_of(gradient.dtype)),
             std::source_location::current());
    }
  });
}

double ExactNumerics::root(const SquareSum& sum) const {
  if (sum.exact >= greatest_sum)
    throw Error(Exit::runtime, "the norm of the gradient is too large to be summed exactly, or no number",
                fmt::format("it may be up to {:.0f}", greatest_norm),
                "lower the learning rate; fast numerics (--numerics fast) have no such limit");
  return std::sqrt(static_cast<double>(sum.exact)) / units;
}

}  // namespace chorale::exact
