#include "src/memory/offline_placement.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "src/base/error.hpp"
#include "src/base/round_up.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::uint32_t>;  // indices of blocks

// For each block, returns the blocks with overlapping lifetimes: the blocks that are alive when the block begins, and the
// blocks that begin during its lifetime.
std::vector<Numbers> overlaps_of(std::span<const Lifetime> blocks) {
  std::vector<Numbers> overlaps(blocks.size());
  Numbers alive;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    std::erase_if(alive, [&](std::uint32_t other) { return blocks[other].ends <= blocks[i].begins; });
    if (blocks[i].ends <= blocks[i].begins) continue;  // never alive
    for (const std::uint32_t other : alive) {
      overlaps[i].push_back(other);
      overlaps[other].push_back(i);
    }
    alive.push_back(i);
  }
  return overlaps;
}

std::int64_t most_alive(std::span<const Lifetime> blocks, const std::vector<std::int64_t>& sizes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // pairs of a time and a number of bytes; at equal times, ends
                                                               // of blocks come first
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].ends > blocks[i].begins) {
      changes.emplace_back(blocks[i].begins, sizes[i]);
      changes.emplace_back(blocks[i].ends, -sizes[i]);
    }
  std::ranges::sort(changes);
  std::int64_t now = 0, most = 0;
  for (const auto& [time, bytes] : changes) most = std::max(most, now += bytes);
  return most;
}

// Places the blocks in the given order, each at the lowest free address.
OfflinePlacement placed_in(const Numbers& order, const std::vector<std::int64_t>& sizes,
                           const std::vector<Numbers>& overlaps) {
  OfflinePlacement placement{.offsets = std::vector<std::int64_t>(sizes.size(), -1)};
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // first address, end
  for (const std::uint32_t i : order) {
    taken.clear();
    for (const std::uint32_t other : overlaps[i])
      if (const std::int64_t first = placement.offsets[other]; first >= 0) taken.emplace_back(first, first + sizes[other]);
    std::ranges::sort(taken);
    std::int64_t at = 0;
    for (const auto& [first, end] : taken) {
      if (first >= at + sizes[i]) break;
      at = std::max(at, end);
    }
    placement.offsets[i] = at;
    placement.bytes = std::max(placement.bytes, at + sizes[i]);
  }
  return placement;
}

}  // namespace

OfflinePlacement place_offline(std::span<const Lifetime> blocks, std::int64_t alignment) {
  require(std::ranges::is_sorted(blocks, {}, &Lifetime::begins), "lifetimes are not in the order of their beginnings");
  std::vector<std::int64_t> sizes;
  for (const Lifetime& block : blocks) sizes.push_back(round_up(block.bytes, alignment));
  const std::vector<Numbers> overlaps = overlaps_of(blocks);
  const auto time = [&](std::uint32_t i) { return static_cast<double>(blocks[i].ends - blocks[i].begins); };
  const std::function<double(std::uint32_t)> keys[] = {
      time, [&](std::uint32_t i) { return static_cast<double>(sizes[i]); },
      [&](std::uint32_t i) { return time(i) * static_cast<double>(sizes[i]); }};
  OfflinePlacement best;
  for (const auto& key : keys) {
    Numbers order(blocks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::greater<>(), key);
    OfflinePlacement placement = placed_in(order, sizes, overlaps);
    if (best.offsets.empty() || placement.bytes < best.bytes) best = std::move(placement);
  }
  best.least = most_alive(blocks, sizes);
  return best;
}

}  // namespace chorale
