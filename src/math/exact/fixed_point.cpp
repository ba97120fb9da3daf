#include "src/math/exact/fixed_point.hpp"

#include <atomic>
#include <cfenv>
#include <cmath>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace chorale::exact {
namespace {

struct CapRange {
  int cap, bits;
};

CapRange range_of(SumOf sum) {
  switch (sum) {
    case SumOf::activations: return {36, 20};
    case SumOf::input_gradients: return {40, 13};
    case SumOf::weight_gradients: return {36, 14};
    case SumOf::token_gradients: return {36, 12};
    case SumOf::exponentials: return {44, 0};  // exponentials are at most 1
    case SumOf::losses: return {30, 12};
  }
  __builtin_unreachable();
}

}  // namespace

int exponent(const SumSite& site) {
  require(site.addends > 0, "the site {} has {} addends: the number of addends was not set", site.name, site.addends);
  const int doublings = std::bit_width(static_cast<std::uint64_t>(site.addends) - 1);  // ⌈log₂ n⌉
  const CapRange range = range_of(site.sum);
  return std::min(range.cap, 62 - doublings - range.bits);
}

double unit(const SumSite& site) { return std::ldexp(1.0, -exponent(site)); }

double greatest_addend(const SumSite& site) { return 0x1p62 / static_cast<double>(site.addends); }

// AVX-512 rounds eight floats to integers with one instruction, which GCC 12 does not generate without intrinsics.
void SiteRounding::add_numbers(std::int64_t* sums, std::int64_t count, const float* from) {
  std::int64_t done = 0;
#ifdef __AVX512DQ__
  const __m256 scale = _mm256_set1_ps(scale_);
  const __m256i all_but_sign = _mm256_set1_epi32(0x7fffffff);
  __m256i highest = _mm256_setzero_si256();
  for (; done + 8 <= count; done += 8) {
    const __m256 y = _mm256_mul_ps(_mm256_loadu_ps(from + done), scale);
    highest = _mm256_max_epu32(highest, _mm256_and_si256(_mm256_castps_si256(y), all_but_sign));
    _mm512_storeu_si512(sums + done, _mm512_add_epi64(_mm512_loadu_si512(sums + done), _mm512_cvtps_epi64(y)));
  }
  std::uint32_t lanes[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), highest);
  for (const std::uint32_t lane : lanes) highest_ = std::max(highest_, lane);
#endif
  add(sums + done, count - done, [rest = from + done](std::int64_t j) { return rest[j]; });
}

void SiteRounding::report(SumSite& site) const {
  std::atomic_ref<std::uint32_t> highest(site.highest);
  std::uint32_t seen = highest.load(std::memory_order_relaxed);
  while (seen < highest_ && !highest.compare_exchange_weak(seen, highest_, std::memory_order_relaxed)) {}
}

void require_plain_arithmetic() {
#ifdef __x86_64__
  const unsigned int mode =
      _mm_getcsr() & 0xffc0u;  // the bits for rounding, traps and subnormals, without the exception flags
  const bool plain = mode == 0x1f80u;
#else
  const int mode = std::fegetround();
  const bool plain = mode == FE_TONEAREST;
#endif
  if (!plain)
    throw Error(
        Exit::runtime, "exact numerics need IEEE default arithmetic",
        fmt::format("a thread's floating-point control word is {:#x}: it rounds differently, traps, or flushes subnormal "
                    "numbers to zero",
                    mode),
        "look for code built with -ffast-math or -Ofast: linking it sets this for the whole program");
}

}  // namespace chorale::exact
