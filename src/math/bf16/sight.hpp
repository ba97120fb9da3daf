// The keys to which each query of a tile attends. Row `r` attends to the keys in [`begin[r]`, `end[r]`), out of the tile's
// 64 keys.
#pragma once
#include "src/base/round_up.hpp"
#include "src/math/attention_tiles.hpp"

namespace chorale::attention {

struct TileSight {
  // `sight(r)` returns the range of keys for row `r`, relative to the first key of the tile. The range of a padding row is
  // [0, 0).
  template <class SightOf>
  [[gnu::always_inline]] explicit TileSight(SightOf&& sight) {
    for (std::int64_t r = 0; r < side; ++r) {
      const Sight all = sight(r);
      begin[r] = static_cast<std::int32_t>(std::min(std::max<std::int64_t>(all.first, 0), side));
      end[r] = static_cast<std::int32_t>(std::min(std::max<std::int64_t>(all.last, 0), side));
    }
    for (std::int64_t b = 0; b < side / lanes; ++b) {
      std::int32_t latest_begin = 0, first_end = side, last_end = 0;
      for (std::int64_t r = b * lanes; r < (b + 1) * lanes; ++r) {
        latest_begin = std::max(latest_begin, begin[r]);
        first_end = std::min(first_end, end[r]);
        last_end = std::max(last_end, end[r]);
      }
      depth[b] = round_up(last_end, lanes);
      all[b] = latest_begin == 0 && first_end >= depth[b];
    }
  }

  // Returns the end of the run of adjacent blocks that start at row r and need the same number of keys.
  [[gnu::always_inline]] std::int64_t run_end(std::int64_t r) const {
    std::int64_t next = r + lanes;
    while (next < side && depth[next / lanes] == depth[r / lanes]) next += lanes;
    return next;
  }
  // Returns the first row of the first block that needs the key, or 64.
  [[gnu::always_inline]] std::int64_t first_row_for(std::int64_t key) const {
    std::int64_t r = 0;
    while (r < side && depth[r / lanes] <= key) r += lanes;
    return r;
  }
  // Uses a single comparison, so that loops over rows vectorize.
  [[gnu::always_inline]] bool sees(std::int64_t r, std::int64_t key) const {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(key) - begin[r]) <
           static_cast<std::uint32_t>(end[r] - begin[r]);
  }

  std::int32_t begin[side], end[side];
  std::int64_t depth[side / lanes];  // number of keys that each block of 16 rows needs, counted from key 0 in complete
                                     // blocks of keys
  bool all[side / lanes];            // whether every row of the block attends to all `depth` keys
};

}  // namespace chorale::attention
