#include "experiments/train/product_peak.hpp"

#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::train;

namespace {

RankFacts rank_on(const std::string& kernel, std::vector<int> cpus) {
  RankFacts rank;
  rank.kernel = kernel;
  rank.cpus = std::move(cpus);
  return rank;
}

}  // namespace

TEST_CASE("the first rank of a machine measures the cores that its ranks use together") {
  using Cpus = std::vector<int>;
  const auto bound = sites_of({rank_on("a", {0}), rank_on("a", {1}), rank_on("b", {0}), rank_on("a", {5})}, 1);
  REQUIRE(bound.size() == 4);
  CHECK((bound[0].cores == 3 && bound[0].cpus == Cpus{0, 1, 5}));
  CHECK((bound[1].cores == 0 && bound[3].cores == 0));
  CHECK((bound[2].cores == 1 && bound[2].cpus == Cpus{0}));

  const Cpus two{0, 1};
  CHECK(sites_of({rank_on("a", two)}, 1)[0].cores == 1);  // one thread uses one core
  CHECK(sites_of({rank_on("a", two)}, 2)[0].cores == 2);
  CHECK(sites_of({rank_on("a", two), rank_on("a", two)}, 1)[0].cores == 2);
  CHECK(sites_of(std::vector(8, rank_on("a", two)), 1)[0].cores == 2);  // cores that several ranks share count only once
  CHECK(sites_of({rank_on("a", {})}, 1)[0].cores == 1);
}

TEST_CASE("an undisturbed peak is kept; if both or neither were disturbed, the faster one") {
  const MeasuredPeak quiet{100, "1", false}, slower{90, "2", false}, busy{120, "3", true}, busier{50, "4", true};
  CHECK(better(std::nullopt, busier).measured == "4");
  CHECK(better(busy, slower).measured == "2");
  CHECK(better(slower, busy).measured == "2");
  CHECK((better(quiet, slower).measured == "1" && better(slower, quiet).measured == "1"));
  CHECK((better(busy, busier).measured == "3" && better(busier, busy).measured == "3"));
}
