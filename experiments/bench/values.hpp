// What goes into a benchmarked call, and what must come out, to the last bit: small whole numbers hashed from (rank,
// element, round), chosen so that every type holds every partial result exactly, in whatever order the ranks are combined.
//
//   sum, avg     |value| ≤ 7, less on many ranks: partial sums stay below 256, which bf16 holds in its 8 bits
//   prod         ±1, and ±2 on at most four ranks; u8 wraps, and takes 3 in place of −1
//   min, max     |value| ≤ 100
//   moved only   0 … 255 as u8, −128 … 127 otherwise
//
// About a nanosecond a value. The round makes a result that was left over from an earlier call a wrong one.
#pragma once
#include <cstdint>
#include <span>

#include "collectives/problem.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"

namespace chorale::bench {

inline constexpr int most_ranks_summed = 255;  // more have no sum that bf16 and u8 hold

struct Values {
  Collective what = Collective::all_reduce;
  Redop op = Redop::sum;
  int ranks = 1;
  int root = 0;
  std::int64_t block = 0;  // elements a rank, where the collective cuts its vector into blocks
  std::uint32_t round = 0;

  // A rank's input, whose elements are those from `first` on of the whole vector.
  void fill(int rank, const Slice& x, std::int64_t first) const;

  // How many elements of a rank's result differ from what they must be; they are those from `first` on of the whole result.
  std::int64_t wrong(int rank, const Slice& result, std::int64_t first) const;

 private:
  void inputs(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const;
  void expect(int rank, std::int64_t first, bool is_unsigned, std::span<int> into) const;
};

}  // namespace chorale::bench
