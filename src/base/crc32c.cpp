#include "src/base/crc32c.hpp"

#include <array>
#include <cstring>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace chorale {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // bit-reversed: the lowest bit is processed first

// The entry `tables[k][b]` is the contribution of byte `b` to the checksum if `k` more bytes follow the byte.
constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> made{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    made[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      made[k][byte] = made[k - 1][byte] >> 8 ^ made[0][made[k - 1][byte] & 0xff];
  return made;
}();

std::uint64_t word_at(const std::byte* place) {
  std::uint64_t word;
  std::memcpy(&word, place, sizeof word);
  return word;
}

#ifdef __SSE4_2__
constexpr std::size_t strip = 512;  // bytes

// The entry `strip_tables[k][b]` is byte k of a checksum, with value b, after a strip of zeros.
constexpr auto strip_tables = [] {
  std::array<std::uint32_t, 32> after{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = 1u << bit;
    for (std::size_t byte = 0; byte < strip; ++byte) crc = crc >> 8 ^ tables[0][crc & 0xff];
    after[bit] = crc;
  }
  std::array<std::array<std::uint32_t, 256>, 4> made{};
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if (byte >> bit & 1) made[k][byte] ^= after[8 * k + bit];
  return made;
}();

std::uint64_t before_strip(std::uint64_t crc) {
  std::uint32_t after = 0;
  for (std::size_t k = 0; k < 4; ++k) after ^= strip_tables[k][crc >> 8 * k & 0xff];
  return after;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = word_at(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][word >> 8 * k & 0xff];
  }
  for (const std::byte byte : bytes) crc = crc >> 8 ^ tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

#ifdef __SSE4_2__
// An instruction has to wait for the result of the one before it, which takes three cycles. So three strips of bytes are
// processed at once. The checksum of the whole follows from those of the strips, because it is linear: a strip counts as if
// zeros followed it. `use` gets each word and its place.
template <class Use>
static std::uint32_t crc32c_of(std::span<const std::byte> bytes, std::uint32_t before, Use&& use) {
  std::uint64_t crc = ~before;
  const std::byte* const first = bytes.data();
  const auto word = [&](std::uint64_t sum, const std::byte* place) {
    const std::uint64_t value = word_at(place);
    use(value, static_cast<std::size_t>(place - first));
    return _mm_crc32_u64(sum, value);
  };
  for (; bytes.size() >= 3 * strip; bytes = bytes.subspan(3 * strip)) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < strip; i += 8) {
      crc = word(crc, bytes.data() + i);
      second = word(second, bytes.data() + strip + i);
      third = word(third, bytes.data() + 2 * strip + i);
    }
    crc = before_strip(before_strip(crc) ^ second) ^ third;
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) crc = word(crc, bytes.data());
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(static_cast<std::uint32_t>(crc), static_cast<unsigned char>(byte));
  return ~static_cast<std::uint32_t>(crc);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc32c_of(bytes, before, [](std::uint64_t, std::size_t) {});
}

// The stores bypass the caches: the target is not read first, and what the caches hold stays.
std::uint32_t copy_with_crc32c(std::byte* to, std::span<const std::byte> bytes, std::uint32_t before) {
  const std::uint32_t crc = crc32c_of(bytes, before, [to](std::uint64_t word, std::size_t at) {
    _mm_stream_si64(reinterpret_cast<long long*>(to + at), static_cast<long long>(word));
  });
  const std::size_t rest = bytes.size() % 8;
  if (rest > 0) std::memcpy(to + bytes.size() - rest, bytes.last(rest).data(), rest);
  _mm_sfence();
  return crc;
}
#else
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) { return crc32c_by_tables(bytes, before); }
std::uint32_t copy_with_crc32c(std::byte* to, std::span<const std::byte> bytes, std::uint32_t before) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return crc32c(bytes, before);
}
#endif

}  // namespace chorale
