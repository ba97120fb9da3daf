// The rotation by the angle of a rotary position, given as cosine and sine. Cosine and sine are computed from sums and
// products with explicit roundings, so host and device results are bit-identical. Results of different libm implementations
// would differ.
//
//   pair i of `half` pairs:  angle = position · base^(−i/half)
//   position = 32·c + f:     rotation(position) = rotation(32·c) · rotation(f), so one table over c and one over f < 32
//                            are enough for a complete sequence
//
//              greatest error         where
//   turn       1.8e-16 absolute       angles up to 10⁷
//   frequency  2.4e-15 relative       bases up to 10¹²
#pragma once
#include <bit>
#include <cstdint>

namespace chorale::math {

struct Turn {
  double cosine, sine;
};

[[gnu::always_inline]] constexpr Turn operator*(const Turn& a, const Turn& b) {
  return {a.cosine * b.cosine - a.sine * b.sine, a.cosine * b.sine + a.sine * b.cosine};
}

namespace parts {

// Returns the nearest integer. The sum of x and `shift` is so large that a double has no bits for a fraction, so the
// addition rounds x.
[[gnu::always_inline]] constexpr double nearest(double x) {
  constexpr double shift = 0x1.8p52;
  return (x + shift) - shift;
}

}  // namespace parts

// base^(−i/half) from log₂ base, as 2^n · e^r with e^r = 1 + r/1·(1 + r/2·(1 + r/3·…)).
[[gnu::always_inline]] constexpr double frequency(std::int64_t i, std::int64_t half, double log2_base) {
  const double power = -log2_base * (static_cast<double>(i) / static_cast<double>(half)), n = parts::nearest(power);
  const double r = (power - n) * 0x1.62e42fefa39efp-1;
  double e = 1;
#pragma GCC unroll 16
  for (int k = 14; k > 0; --k) e = __builtin_fma(e, r * (1.0 / k), 1.0);
  return e * std::bit_cast<double>((static_cast<std::int64_t>(n) + 1023) << 52);
}

// r = angle − n·π/2, with π/2 as the sum of three parts; the products of n with the first two parts are exact. Then cos r =
// 1 − r²/(1·2)·(1 − r²/(3·4)·…) and sin r = r·(1 − r²/(2·3)·(1 − r²/(4·5)·…)).
[[gnu::always_inline]] constexpr Turn turn(double angle) {
  const double n = parts::nearest(angle * 0x1.45f306dc9c883p-1);
  const double high = __builtin_fma(n, -0x1.0b4611a6p-34, __builtin_fma(n, -0x1.921fb544p+0, angle));
  const double r = __builtin_fma(n, -0x1.3198a2e037073p-69, high), square = -r * r;
  double cosine = 1, sine = 1;
#pragma GCC unroll 8
  for (int k = 8; k > 0; --k) {
    cosine = __builtin_fma(cosine, square * (1.0 / ((2 * k - 1) * (2 * k))), 1.0);
    sine = __builtin_fma(sine, square * (1.0 / ((2 * k) * (2 * k + 1))), 1.0);
  }
  sine *= r;
  const auto quarters = static_cast<std::int64_t>(n);
  const double x = quarters & 1 ? sine : cosine, y = quarters & 1 ? cosine : sine;
  return {(quarters + 1) & 2 ? -x : x, quarters & 2 ? -y : y};
}

// Computes the rotation of a position from its two parts. All code uses this product, so that all results are bit-identical.
inline constexpr std::int64_t fine_positions = 32;
[[gnu::always_inline]] constexpr Turn turn_of(std::int64_t position, double frequency) {
  const auto coarse = static_cast<double>(position / fine_positions * fine_positions);
  return turn(coarse * frequency) * turn(static_cast<double>(position % fine_positions) * frequency);
}

}  // namespace chorale::math
