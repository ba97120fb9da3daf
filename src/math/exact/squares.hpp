// ‖g‖² in fixed point. The squares span too many powers of two for 64 bits. Therefore q = |g|·2^40 is rounded to an integer,
// and q² is summed in 128 bits. Small elements are not lost beside large elements, and the order of the sum does not matter.
//
// The norm must not exceed 2^18. A sum of squares saturates at the square of this limit. Squares are never negative, so
// whether the sum saturates does not depend on the order. The saturated sums of a thousand ranks still fit in 128 bits, and
// `root` throws on every rank. A NaN counts as an element above the limit.
#pragma once
#include <cstdint>

namespace chorale::exact {

inline constexpr double greatest_norm = 0x1p18, units_of_norm = 0x1p40;
inline constexpr double greatest_element = greatest_norm * units_of_norm;
inline constexpr __int128 greatest_square_sum = static_cast<__int128>(1) << 116;  // (2^18·2^40)²

// Returns q for an element. The same code runs on the host and on a device.
template <class T>
constexpr std::int64_t whole_element(T gradient, double scale) {
  const float g = static_cast<float>(static_cast<double>(gradient) * scale);
  const double size = __builtin_fabs(static_cast<double>(g) * units_of_norm);
  const double rounded = __builtin_rint(size < greatest_element ? size : greatest_element);  // a comparison with NaN is
                                                                                             // false, so a NaN saturates
  return static_cast<std::int64_t>(rounded);
}

}  // namespace chorale::exact
