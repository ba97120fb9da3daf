// Counts the bytes that move between memory and a slow tier, such as a file.
#pragma once
#include <array>
#include <cstdint>
#include <numeric>

#include <chorale/ledger.hpp>

namespace chorale {

// The bytes that a rank has read from the tier and written to it, by tensor category.
struct TierTraffic {
  std::array<std::int64_t, categories> read{}, written{};
  bool operator==(const TierTraffic&) const = default;
  void add(const TierTraffic& other, std::int64_t times) {
    for (std::size_t c = 0; c < categories; ++c) {
      read[c] += times * other.read[c];
      written[c] += times * other.written[c];
    }
  }
  std::int64_t all_read() const { return std::accumulate(read.begin(), read.end(), std::int64_t{0}); }
  std::int64_t all_written() const { return std::accumulate(written.begin(), written.end(), std::int64_t{0}); }
};

}  // namespace chorale
