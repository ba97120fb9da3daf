// Tests the split of layers among pipeline stages, which must minimize the cost of the most expensive stage.
#include "parallel/pipeline/split.hpp"

#include <algorithm>
#include <numeric>

#include "tests/catch.hpp"

using namespace chorale;

namespace {

using Sizes = std::vector<std::int64_t>;

double greatest(const std::vector<double>& costs, const Sizes& sizes) {
  double most = 0;
  auto layer = costs.begin();
  for (const std::int64_t size : sizes) {
    most = std::max(most, std::accumulate(layer, layer + size, 0.0));
    layer += size;
  }
  return most;
}

// Tries all ways to divide the layers into `parts` consecutive parts. Returns the smallest possible cost of the most
// expensive part.
double least_greatest(const std::vector<double>& costs, std::int64_t parts) {
  if (parts == 1) return std::accumulate(costs.begin(), costs.end(), 0.0);
  double best = 1e300;
  for (std::size_t first = 1; first + static_cast<std::size_t>(parts) - 1 <= costs.size(); ++first) {
    const auto cut = costs.begin() + static_cast<std::ptrdiff_t>(first);
    best = std::min(best, std::max(std::accumulate(costs.begin(), cut, 0.0), least_greatest({cut, costs.end()}, parts - 1)));
  }
  return best;
}

}  // namespace

TEST_CASE("layers are split by cost") {
  CHECK(split_layers(std::vector<double>{1, 1, 1, 1, 2}, 3) == Sizes{2, 2, 1});
  CHECK(split_layers(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1}, 4) == Sizes{2, 2, 2, 2});
  CHECK(split_layers(std::vector<double>{1, 1, 1, 1, 1}, 1) == Sizes{5});
  CHECK(split_layers(std::vector<double>{5, 1, 1, 1, 1, 1}, 3) ==
        Sizes{1, 2, 3});  // the most even partition with a maximum cost of 5
  CHECK(split_layers(std::vector<double>{0, 0, 9}, 3) == Sizes{1, 1, 1});
  CHECK_THROWS_WITH(split_layers(std::vector<double>{1, 1}, 3), says("cannot be cut"));
}

TEST_CASE("split_layers finds a cut whose most expensive part is as cheap as possible") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<double> costs;
    for (std::uint64_t i = 0; i < 4 + seed % 6; ++i)
      costs.push_back(static_cast<double>((seed * 7919 + i * i * 31 + i) % 17));
    for (std::int64_t parts = 1; parts <= 4; ++parts) {
      const Sizes sizes = split_layers(costs, parts);
      INFO("seed " << seed << ", " << parts << " parts");
      REQUIRE(static_cast<std::int64_t>(sizes.size()) == parts);
      CHECK(*std::min_element(sizes.begin(), sizes.end()) >= 1);
      CHECK(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == static_cast<std::int64_t>(costs.size()));
      CHECK(greatest(costs, sizes) == least_greatest(costs, parts));
    }
  }
}
