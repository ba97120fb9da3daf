// The inputs of a benchmarked call, and its expected results, which are exact to the last bit. Inputs are small integers
// hashed from the rank, the element's index and the round. In every element type, every partial result is exact, whatever
// the order of the ranks.
//
//   sum, avg     |value| ≤ 7, less on many ranks: partial sums stay below 256, so 8 significant bits (bf16) suffice
//   prod         ±1, and ±2 on at most four ranks; u8 wraps, and has 3 instead of −1
//   min, max     |value| ≤ 100
//   no operator  0 … 255 as u8, −128 … 127 otherwise
//
// Generating a value takes about 1 ns. Inputs depend on the round, so a stale result of an earlier call counts as wrong.
#pragma once
#include <cstdint>
#include <span>

#include <chorale/problem.hpp>
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"

namespace chorale::bench {

inline constexpr int most_ranks_summed = 255;  // bf16 and u8 cannot represent sums over more ranks

struct Values {
  Collective what = Collective::all_reduce;
  Redop op = Redop::sum;
  int ranks = 1;
  int root = 0;
  std::int64_t block = 0;  // number of elements in a rank's block, for collectives that divide their vector
  std::uint32_t round = 0;

  // Fills a rank's input. The input is the part of the full vector that starts at element `first`.
  void fill(int rank, const Slice& x, std::int64_t first) const;

  // Counts the wrong elements of a rank's result. The result is the part of the full result that starts at element `first`.
  std::int64_t wrong(int rank, const Slice& result, std::int64_t first) const;

 private:
  void inputs(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const;
  void expect(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const;
};

}  // namespace chorale::bench
