// Tests the offline placement of blocks with random lifetimes. Two blocks must never use the same address at the same time,
// and little memory is wasted.
#include "src/memory/offline_placement.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace chorale;

namespace {

// Whether two blocks overlap in time and address. Compares all pairs.
bool collide(const std::vector<Lifetime>& blocks, const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (std::size_t j = i + 1; j < blocks.size(); ++j) {
      if (std::min(blocks[i].bytes, blocks[j].bytes) == 0) continue;
      if (blocks[i].begins == blocks[i].ends || blocks[j].begins == blocks[j].ends) continue;
      const bool in_time = blocks[i].begins < blocks[j].ends && blocks[j].begins < blocks[i].ends;
      const bool in_space = offsets[i] < offsets[j] + blocks[j].bytes && offsets[j] < offsets[i] + blocks[i].bytes;
      if (in_time && in_space) return true;
    }
  return false;
}

// Returns the maximum number of bytes that are alive at the same time. Checks the start of every block.
std::int64_t most_alive(const std::vector<Lifetime>& blocks, std::int64_t alignment) {
  std::int64_t most = 0;
  for (const Lifetime& at : blocks) {
    std::int64_t now = 0;
    for (const Lifetime& block : blocks)
      if (block.begins <= at.begins && at.begins < block.ends) now += (block.bytes + alignment - 1) / alignment * alignment;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("blocks placed offline never collide, and need little more than what lives at once") {
  std::mt19937 random(1);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  double worst = 0, sum = 0;
  constexpr int sets = 1000;
  for (int set = 0; set < sets; ++set) {
    std::vector<Lifetime> blocks;
    const std::int64_t count = 1 + below(100), span = 1 + below(200), longest = 1 + below(200), sizes = 1 + below(30);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t begins = below(span);
      blocks.push_back({below(10) == 0 ? 0 : 1 + below(sizes * sizes), begins, begins + below(longest + 1)});
    }
    std::ranges::sort(blocks, {}, &Lifetime::begins);
    const std::int64_t alignment = set % 2 == 0 ? 1 : 64;
    const OfflinePlacement placement = place_offline(blocks, alignment);
    REQUIRE(placement.offsets.size() == blocks.size());
    REQUIRE(!collide(blocks, placement.offsets));
    REQUIRE(std::ranges::all_of(placement.offsets, [&](std::int64_t at) { return at >= 0 && at % alignment == 0; }));
    for (std::size_t i = 0; i < blocks.size(); ++i) REQUIRE(placement.offsets[i] + blocks[i].bytes <= placement.bytes);
    REQUIRE(placement.least == most_alive(blocks, alignment));
    if (placement.least == 0) continue;
    const double factor = static_cast<double>(placement.bytes) / static_cast<double>(placement.least);
    worst = std::max(worst, factor);
    sum += factor;
  }
  INFO("worst " << worst << ", mean " << sum / sets);
  CHECK(worst <= 1.25);
  CHECK(sum / sets <= 1.02);
}

// A tape returns blocks in the reverse order of their requests. Blocks that are returned in this order fit without any
// waste.
TEST_CASE("nested lifetimes need exactly what lives at once") {
  for (std::int64_t depth = 1; depth <= 40; ++depth) {
    std::vector<Lifetime> blocks;
    for (std::int64_t i = 0; i < depth; ++i) blocks.push_back({64 * (1 + i * 7 % 11), i, 2 * depth - i});
    const OfflinePlacement placement = place_offline(blocks);
    CHECK(placement.bytes == placement.least);
  }
}

TEST_CASE("nothing is placed in nothing, and lifetimes must be in order") {
  CHECK(place_offline({}).bytes == 0);
  const std::vector<Lifetime> blocks{{1, 2, 3}, {1, 1, 3}};
  CHECK_THROWS_WITH(place_offline(blocks), says("not in the order"));
}
