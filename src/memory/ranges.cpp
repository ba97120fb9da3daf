#include "src/memory/ranges.hpp"

#include <iterator>

#include "src/base/round_up.hpp"

namespace chorale {

std::int64_t FreeRanges::take(std::int64_t bytes, std::int64_t alignment) {
  for (const auto& piece : free_) {
    const auto [start, length] = piece;
    const std::int64_t first = round_up(start, alignment);
    if (first + bytes > start + length) continue;
    free_.erase(start);
    if (first > start) free_[start] = first - start;
    if (first + bytes < start + length) free_[first + bytes] = start + length - first - bytes;
    return first;
  }
  return -1;
}

void FreeRanges::give_back(std::int64_t first, std::int64_t bytes) {
  const auto next = free_.upper_bound(first);
  if (next != free_.end() && next->first == first + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.upper_bound(first);
  if (after != free_.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == first) {
      previous->second += bytes;
      return;
    }
  }
  free_[first] = bytes;
}

}  // namespace chorale
