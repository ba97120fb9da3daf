// Sums whose bits do not depend on the order: every addend is rounded to a whole number of units 2^-e, and whole numbers add associatively.
//
//   x ──·2^e──▶ y ──nearest even──▶ q, an int64        S = q₁ + q₂ + …  in any order, over any ranks        value = S·2^-e
//
// e follows from the kind of the sum and the greatest number n of addends, from the configuration alone: e = min(cap, 62 − ⌈log₂ n⌉ − R),
// where addends are expected below 2^R. None may exceed 2^62/n units: then no order, and no part of the sum, overflows. What came nearest
// is kept per site, as the bits of |y|: they are ordered as the numbers are, and Inf and NaN are above all of them.
//
//             activations  input gradients  weight gradients  token gradients  exponentials  losses
//   cap           36             40                36                36             44          30
//   R             20             13                14                12              0          12
//
// Cost: 0.07 ns an element with AVX-512, 0.3 ns without, and 8 bytes for what takes 4 in f32.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "src/base/parallel.hpp"
#include "src/math/numerics.hpp"

namespace chorale::exact {

int exponent(const Site& site);
double unit(const Site& site);             // 2^-e
double greatest_addend(const Site& site);  // 2^62/n, in units

// To nearest even. On x86 before AVX-512 no instruction makes int64 of several doubles: there the upper and the lower 32 bits are rounded by
// adding 1.5·2^52, after which they stand in the last bits of the sum. Both forms agree below 2^62; above, the site is found out.
[[gnu::always_inline]] inline std::int64_t nearest_integer(float y) {
#ifdef __AVX512DQ__
  const double rounded =
      __builtin_rint(static_cast<double>(y));  // a variable of its own: GCC 12 makes a call of (int64)rint(…)
  return static_cast<std::int64_t>(rounded);
#else
  constexpr double shift = 0x1.8p52;
  const double whole = y, shifted = whole * 0x1p-32 + shift, rest = whole - (shifted - shift) * 0x1p32;
  const auto high = std::bit_cast<std::uint64_t>(shifted), low = std::bit_cast<std::uint64_t>(rest + shift);
  constexpr auto bias = std::bit_cast<std::uint64_t>(shift);
  return static_cast<std::int64_t>((high << 32) + low - ((bias << 32) + bias));
#endif
}

// Sums wrap, where signed ones are undefined: a site beyond its limit is reported, not computed with.
[[gnu::always_inline]] inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Adds floats into the sums of one site, on one thread.
class Rounding {
 public:
  explicit Rounding(const Site& site) : scale_(static_cast<float>(1 / unit(site))) {}

  // sums[j] += value(j)
  template <class Value>
  [[gnu::always_inline]] void add(std::int64_t* sums, std::int64_t count, Value value) {
    std::uint32_t highest = highest_;
    const float scale = scale_;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j) {
      const float y = value(j) * scale;
      highest = std::max(highest, magnitude(y));
      sums[j] = plus(sums[j], nearest_integer(y));
    }
    highest_ = highest;
  }

  // Σ_j value(j)
  template <class Value>
  [[gnu::always_inline]] std::int64_t sum(std::int64_t count, Value value) {
    std::uint32_t highest = highest_;
    const float scale = scale_;
    std::uint64_t total = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      const float y = value(j) * scale;
      highest = std::max(highest, magnitude(y));
      total += static_cast<std::uint64_t>(nearest_integer(y));
    }
    highest_ = highest;
    return static_cast<std::int64_t>(total);
  }

  void report(Site& site) const;  // raises the site's highest; threads may do so together

 private:
  static std::uint32_t magnitude(float y) { return std::bit_cast<std::uint32_t>(y) & 0x7fffffffu; }
  float scale_;
  std::uint32_t highest_ = 0;
};

// Throws if this thread rounds other than to nearest even, or takes subnormal numbers for zero.
void require_plain_arithmetic();

// body(first, last) on the threads of the queue, each of which has been looked at.
template <class Body>
void plain_for(const Queue& queue, std::int64_t count, Body&& body) {
  parallel_for(queue.threads, count, [&](std::int64_t first, std::int64_t last) {
    require_plain_arithmetic();
    body(first, last);
  });
}

// body(first, last, rounding), where the addends belong to a site.
template <class Body>
void rounded_for(const Queue& queue, std::int64_t count, Site& site, Body&& body) {
  plain_for(queue, count, [&](std::int64_t first, std::int64_t last) {
    Rounding rounding(site);
    body(first, last, rounding);
    rounding.report(site);
  });
}

}  // namespace chorale::exact
