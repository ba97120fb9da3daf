// Which parts of a piece of memory are free. The first place where they fit is taken, and what comes back is joined with its neighbours.
//
//   [ taken ][ free ····· ][ taken ][ free ]      cost: as many looks as there are free parts
#pragma once
#include <cstdint>
#include <map>

namespace chorale {

class FreeRanges {
 public:
  explicit FreeRanges(std::int64_t bytes) : free_{{0, bytes}} {}

  // Where they begin, at a multiple of `alignment`; −1 where they fit nowhere.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment);
  void give_back(std::int64_t first, std::int64_t bytes);

 private:
  std::map<std::int64_t, std::int64_t> free_;  // start → bytes; no two are neighbours
};

}  // namespace chorale
