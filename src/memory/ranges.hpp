// The free ranges inside one block of memory. A request gets the first range that fits; a returned range is merged with its
// free neighbors.
//
//   [ taken ][ free ····· ][ taken ][ free ]      cost: linear in the number of free ranges
#pragma once
#include <cstdint>
#include <map>

namespace chorale {

class FreeRanges {
 public:
  explicit FreeRanges(std::int64_t bytes) : free_{{0, bytes}} {}

  // Takes `bytes` from a free range. Returns the start, which is a multiple of `alignment`, or −1 if no range fits.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment);
  void give_back(std::int64_t first, std::int64_t bytes);

 private:
  std::map<std::int64_t, std::int64_t> free_;  // maps the start of each free range to its size; no two ranges are adjacent
};

}  // namespace chorale
