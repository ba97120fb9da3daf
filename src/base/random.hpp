// Philox 4x32-10 (Salmon et al., SC 2011): random numbers as a pure function of a key and a counter. The counter contains
// the *global* index of an element. A value therefore does not depend on the rank, the thread, the order or the split of the
// work. The site is a number that identifies the consumer, such as a dropout layer. The step is the training step. A value
// takes about 0.7 ns in bulk (AVX-512), or 2 ns if only the four values of one counter are computed at a time.
//
//   key     = seed                                  64 bits
//   counter = ( index / 4 : 64 | site : 32 | step : 32 )
//   element = lane index % 4 of the 128-bit output
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace chorale {

namespace philox {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

constexpr Counter block(Counter c, Key k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};  // the golden ratio − 1 and √3 − 1, as in the paper
  }
  return c;
}

// Computes the 64 words of 16 counters, starting at (index, site, step). The 16 lanes are computed together so that the
// compiler vectorizes each line. Each 32-bit word is stored in 64 bits, because the product of two words needs 64 bits.
inline void blocks(std::uint64_t index, std::uint32_t site, std::uint32_t step, Key k, std::uint32_t* out) {
  constexpr int lanes = 16;
  constexpr std::uint64_t low = 0xffffffff;
  std::uint64_t c[4][lanes];
  for (int l = 0; l < lanes; ++l) {
    const std::uint64_t here = index + static_cast<std::uint64_t>(l);
    c[0][l] = here & low;
    c[1][l] = here >> 32;
    c[2][l] = site;
    c[3][l] = step;
  }
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 1  // if this loop is unrolled, GCC does not vectorize it
    for (int l = 0; l < lanes; ++l) {
      const std::uint64_t a = 0xD2511F53 * c[0][l], b = 0xCD9E8D57 * c[2][l];
      c[0][l] = b >> 32 ^ c[1][l] ^ k[0];
      c[1][l] = b & low;
      c[2][l] = a >> 32 ^ c[3][l] ^ k[1];
      c[3][l] = a & low;
    }
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  for (int l = 0; l < lanes; ++l)
    for (int word = 0; word < 4; ++word) out[4 * l + word] = static_cast<std::uint32_t>(c[word][l]);
}

}  // namespace philox

// One sequence of random numbers. `site` identifies the consumer (a dropout layer, a tensor's initialization). `step` is the
// training step.
struct Random {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;

  constexpr philox::Key key() const { return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}; }
  constexpr philox::Counter four(std::uint64_t index_div_4) const {
    return philox::block(
        {static_cast<std::uint32_t>(index_div_4), static_cast<std::uint32_t>(index_div_4 >> 32), site, step}, key());
  }
  constexpr std::uint32_t bits(std::uint64_t index) const { return four(index / 4)[index % 4]; }

  // Returns a uniform value in [0, 1) with 24 bits, so that the conversion to float is exact.
  static constexpr float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
  constexpr float uniform(std::uint64_t index) const { return unit(bits(index)); }

  // out[i] = bits(first + i). The values do not depend on how a range is split into calls.
  void fill_bits(std::uint64_t first, std::span<std::uint32_t> out) const {
    std::uint32_t words[64];
    for (std::size_t i = 0; i < out.size();) {
      const std::size_t lane = (first + i) % 4, here = std::min(out.size() - i, 64 - lane);
      philox::blocks((first + i) / 4, site, step, key(), words);
      std::copy_n(words + lane, here, out.begin() + static_cast<std::ptrdiff_t>(i));
      i += here;
    }
  }
  // out[i] = uniform(first + i)
  void fill_uniform(std::uint64_t first, std::span<float> out) const {
    std::uint32_t some[256];
    for (std::size_t i = 0; i < out.size();) {
      const std::size_t here = std::min(out.size() - i, std::size(some));
      fill_bits(first + i, std::span(some, here));
      for (std::size_t j = 0; j < here; ++j) out[i + j] = unit(some[j]);
      i += here;
    }
  }
};

}  // namespace chorale
