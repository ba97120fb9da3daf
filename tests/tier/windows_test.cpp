// Tests windows (blocks of a tensor that are in memory one at a time) over tensors of odd lengths, one tensor in memory and
// one in a file. Sums over windows must include every element exactly once.
#include "src/tier/windows.hpp"

#include <numeric>

#include "src/memory/on_host.hpp"
#include "src/tier/file_tier.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

TEST_CASE("windows visit all elements of tensors in memory and in the tier, and write what they changed") {
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  HostMemory host;
  Ledger here, there;
  Allocator memory(host, here), slow(tier, there);
  for (const std::int64_t elements : {1024, 2048, 1 << 20}) {
    std::vector<WindowParts> items;
    for (const std::int64_t count : {5, 1024, 5000}) {
      const Tensor numbers(memory, {count}, DType::i64, Category::data),
          sums(slow, {count}, DType::i64, Category::optimizer);
      std::iota(numbers.values<std::int64_t>().begin(), numbers.values<std::int64_t>().end(), 10 * count);
      items.push_back({{numbers}, {sums, Category::optimizer, true, true}, {}});
    }
    TierTraffic traffic;
    for (int time = 0; time < 3; ++time)
      through_windows(items, elements, memory, traffic, [](const Window&, std::span<const Tensor> window) {
        for (std::int64_t i = 0; i < window[0].count(); ++i)
          window[1].values<std::int64_t>()[static_cast<std::size_t>(i)] +=
              window[0].values<std::int64_t>()[static_cast<std::size_t>(i)];
      });
    for (const WindowParts& item : items)
      with_values<std::int64_t>(item[1].whole, Use::read, [&](std::span<std::int64_t> sums) {
        const auto numbers = item[0].whole.values<std::int64_t>();
        for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(sums[i] == 3 * numbers[i]);
      });
    const auto optimizer = static_cast<std::size_t>(Category::optimizer);
    CHECK((traffic.read[optimizer] == 3 * 8 * 6029 && traffic.written[optimizer] == 3 * 8 * 6029));
    CHECK(here.peak(Category::optimizer) <= 3 * (elements * 8 + FileTier::block));
  }
}

}  // namespace
}  // namespace chorale
