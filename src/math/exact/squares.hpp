// ‖g‖², whose addends span so many powers of two that 64 bits do not hold them: q = |g|·2^40 to the nearest integer, and q² summed in 128 bits.
// Small elements count beside great ones, and the sum has no order.
//
// The norm may be up to 2^18. Squares are never negative, so that a sum which stops growing at its limit stops there in every order, and the
// sums of a thousand ranks still fit: `root` then refuses on every rank alike. An element that is no number counts as one above the limit.
#pragma once
#include <cstdint>

namespace chorale::exact {

inline constexpr double greatest_norm = 0x1p18, units_of_norm = 0x1p40;
inline constexpr double greatest_element = greatest_norm * units_of_norm;
inline constexpr __int128 greatest_square_sum = static_cast<__int128>(1) << 116;  // (2^18·2^40)²

// q of an element, on the host and on a device.
template <class T>
constexpr std::int64_t whole_element(T gradient, double scale) {
  const float g = static_cast<float>(static_cast<double>(gradient) * scale);
  const double size = __builtin_fabs(static_cast<double>(g) * units_of_norm);
  const double rounded = __builtin_rint(size < greatest_element ? size : greatest_element);  // NaN is not less
  return static_cast<std::int64_t>(rounded);
}

}  // namespace chorale::exact
