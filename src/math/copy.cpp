#include "src/math/copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace chorale {

#if defined(__AVX__)
void stream(void* to, const void* from, std::int64_t bytes) {
  constexpr std::int64_t line = 64, half = 32;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const auto head = std::min<std::int64_t>(bytes, static_cast<std::int64_t>(-std::bit_cast<std::uintptr_t>(out) % line));
  std::memcpy(out, in, static_cast<std::size_t>(head));
  std::int64_t at = head;
  for (; at + line <= bytes; at += line) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at + half));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + at), first);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + at + half), second);
  }
  std::memcpy(out + at, in + at, static_cast<std::size_t>(bytes - at));
  _mm_sfence();  // orders the non-temporal stores before a later flag that announces the data
}
#else
void stream(void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); }
#endif

}  // namespace chorale
