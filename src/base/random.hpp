// Philox 4x32-10 (Salmon et al., SC 2011): random numbers as a pure function of a key and a counter. Keyed by
// (seed, step, site) and the *global* index of an element, so no value depends on which rank or thread asks for it,
// in which order, or how the work is cut. About 2 ns a value when four values of one counter are used together.
//
//   key     = seed                                  64 bits
//   counter = ( index / 4 : 64 | site : 32 | step : 32 )
//   element = lane index % 4 of the 128-bit output
#pragma once
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
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};  // the golden ratio and √3 − 1, as in the paper
  }
  return c;
}

}  // namespace philox

// One stream of numbers: `site` names the place that asks (a dropout layer, a tensor's initialisation), `step` when.
struct Random {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;

  constexpr philox::Counter four(std::uint64_t index_div_4) const {
    return philox::block(
        {static_cast<std::uint32_t>(index_div_4), static_cast<std::uint32_t>(index_div_4 >> 32), site, step},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
  constexpr std::uint32_t bits(std::uint64_t index) const { return four(index / 4)[index % 4]; }

  // Uniform in [0, 1) with 24 bits, so that the conversion to float is exact.
  static constexpr float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
  constexpr float uniform(std::uint64_t index) const { return unit(bits(index)); }

  // out[i] = uniform(first + i); any split of a range gives the same values.
  void fill_uniform(std::uint64_t first, std::span<float> out) const {
    std::size_t i = 0;
    while (i < out.size()) {
      const std::uint64_t index = first + i;
      const philox::Counter values = four(index / 4);
      for (std::uint64_t lane = index % 4; lane < 4 && i < out.size(); ++lane) out[i++] = unit(values[lane]);
    }
  }
};

}  // namespace chorale
