// Leaves are fixed groups of consecutive tokens of a sample. Exact numerics sums floats within a leaf, and adds the sums of
// leaves as integers (docs/architecture/numerics.md). The last leaf of a sample can be shorter.
//
//   10 tokens, leaves of 4:   0–3  4–7  8–9
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/error.hpp"

namespace chorale {

struct Leaves {
  std::int64_t length = 1, tokens = 1;  // `length` is the number of tokens per leaf; `tokens` is the number of tokens per
                                        // sample on this rank

  constexpr Leaves(std::int64_t length) : length(length), tokens(length) {}  // each leaf is a complete sample
  constexpr Leaves(std::int64_t length, std::int64_t tokens) : length(length), tokens(tokens) {}

  constexpr std::int64_t per_sample() const { return (tokens + length - 1) / length; }
  constexpr std::int64_t count(std::int64_t rows) const { return rows / tokens * per_sample(); }
  constexpr std::int64_t of(std::int64_t row) const { return row / tokens * per_sample() + row % tokens / length; }
  constexpr std::int64_t first_row(std::int64_t leaf) const {  // also valid for the index after the last leaf
    return leaf / per_sample() * tokens + leaf % per_sample() * length;
  }
  std::vector<std::int64_t> sizes(std::int64_t rows) const {
    require(length > 0 && tokens > 0 && rows % tokens == 0, "{} rows are not samples of {} tokens with leaves of {}", rows,
            tokens, length);
    std::vector<std::int64_t> all;
    for (std::int64_t leaf = 0; leaf < count(rows); ++leaf) all.push_back(first_row(leaf + 1) - first_row(leaf));
    return all;
  }
};

}  // namespace chorale
