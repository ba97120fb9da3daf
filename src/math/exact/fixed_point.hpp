// Sums that are bit-identical in every order of addition. Every addend is rounded to an integer number of units 2^-e, and
// integer addition is associative.
//
//   x ──·2^e──▶ y ──nearest even──▶ q, an int64        S = q₁ + q₂ + …  in any order, over any ranks        value = S·2^-e
//
// The exponent e = min(cap, 62 − ⌈log₂ n⌉ − R) depends only on the configuration. Here n is the largest possible number of
// addends, and the kind of the sum determines `cap` and R. Addends are expected to be below 2^R. Addends must not exceed
// 2^62/n units. No partial sum can then overflow, whatever the order of the addends. Each site (SumSite, a point in the
// model at which values are summed) records the bits of its largest |y|. As integers, these bits have the same order as the
// floats, with Inf and NaN above all finite values.
//
//             activations  input gradients  weight gradients  token gradients  exponentials  losses
//   cap           36             40                36                36             44          30
//   R             20             13                14                12              0          12
//
// Cost: 0.07 ns per element with AVX-512, and 0.3 ns without AVX-512. A sum takes 8 bytes instead of 4.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "src/base/parallel.hpp"
#include "src/math/numerics.hpp"

namespace chorale::exact {

int exponent(const SumSite& site);
double unit(const SumSite& site);             // 2^-e
double greatest_addend(const SumSite& site);  // 2^62/n, in units

// Rounds to nearest even. x86 processors without AVX-512 have no vector conversion from double to int64. Therefore the upper
// and the lower 32 bits are rounded separately: after 1.5·2^52 is added, the last bits of the sum hold the integer. Both
// implementations agree for magnitudes below 2^62. Larger values exceed the site's limit and are reported.
[[gnu::always_inline]] inline std::int64_t nearest_integer(float y) {
#ifdef __AVX512DQ__
  const double rounded =
      __builtin_rint(static_cast<double>(y));  // a separate variable: GCC 12 turns (int64)rint(…) into a call
  return static_cast<std::int64_t>(rounded);
#else
  constexpr double shift = 0x1.8p52;
  const double whole = y, shifted = whole * 0x1p-32 + shift, rest = whole - (shifted - shift) * 0x1p32;
  const auto high = std::bit_cast<std::uint64_t>(shifted), low = std::bit_cast<std::uint64_t>(rest + shift);
  constexpr auto bias = std::bit_cast<std::uint64_t>(shift);
  return static_cast<std::int64_t>((high << 32) + low - ((bias << 32) + bias));
#endif
}

// Adds with wrap-around, because signed overflow is undefined. If an addend exceeds its site's limit, check() throws and the
// sums are not used.
[[gnu::always_inline]] inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Adds floats to the sums of one site, on one thread.
class SiteRounding {
 public:
  explicit SiteRounding(const SumSite& site) : scale_(static_cast<float>(1 / unit(site))) {}

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

  // Computes sums[j] += from[j], faster than add().
  void add_numbers(std::int64_t* sums, std::int64_t count, const float* from);

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

  void report(SumSite& site) const;  // raises the `highest` of the site; threads can call report() concurrently

 private:
  static std::uint32_t magnitude(float y) { return std::bit_cast<std::uint32_t>(y) & 0x7fffffffu; }
  float scale_;
  std::uint32_t highest_ = 0;
};

// Throws unless this thread rounds to nearest even and keeps subnormal numbers.
void require_plain_arithmetic();

// Runs body(first, last) on the queue's threads. First checks the floating-point mode of each thread.
template <class Body>
void plain_for(const Queue& queue, std::int64_t count, Body&& body) {
  parallel_for(queue.threads, count, [&](std::int64_t first, std::int64_t last) {
    require_plain_arithmetic();
    body(first, last);
  });
}

// Runs body(first, last, rounding) on the queue's threads, for addends of one site.
template <class Body>
void rounded_for(const Queue& queue, std::int64_t count, SumSite& site, Body&& body) {
  plain_for(queue, count, [&](std::int64_t first, std::int64_t last) {
    SiteRounding rounding(site);
    body(first, last, rounding);
    rounding.report(site);
  });
}

}  // namespace chorale::exact
