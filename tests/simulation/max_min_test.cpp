// Tests that resources are shared by max-min fairness. Equal activities must get the same rates whether they are counted one
// by one or together.
#include "src/simulation/max_min.hpp"

#include "tests/catch.hpp"

namespace chorale::test {
namespace {

Activity flow(double limit, std::vector<ResourceUse> uses) { return {.uses = std::move(uses), .limit = limit}; }

std::vector<double> rates(std::vector<Activity> flows, double capacity, int links) {
  max_min(std::vector<double>(static_cast<std::size_t>(links), capacity))(flows);
  std::vector<double> all;
  for (const Activity& one : flows) all.push_back(one.rate);
  return all;
}

}  // namespace

TEST_CASE("connections that want little leave their share to the others") {
  CHECK(rates({flow(20, {{0, 1}}), flow(50, {{0, 1}}), flow(50, {{0, 1}})}, 100, 1) == std::vector<double>{20, 40, 40});
  CHECK(rates({flow(20, {{0, 1}}), flow(50, {{0, 1}})}, 100, 1) == std::vector<double>{20, 50});
}

TEST_CASE("links may have different capacities") {
  std::vector<Activity> flows{flow(1e9, {{0, 1}, {1, 1}}), flow(1e9, {{1, 1}})};
  max_min({10, 90})(flows);
  CHECK(flows[0].rate == 10);
  CHECK(flows[1].rate == 80);
}

TEST_CASE("a connection over two links gets what the fuller one leaves") {
  // Link 0 has two connections, and link 1 has three. One connection uses both links.
  const auto all =
      rates({flow(1e9, {{0, 1}}), flow(1e9, {{0, 1}, {1, 1}}), flow(1e9, {{1, 1}}), flow(1e9, {{1, 1}})}, 90, 2);
  CHECK(all == std::vector<double>{60, 30, 30, 30});
}

TEST_CASE("eight equal transfers, and one with eight connections, have the same rates, bit for bit") {
  std::vector<Activity> apart{flow(3.7, {{0, 1}, {1, 1}})}, together = apart;
  for (int i = 0; i < 8; ++i) apart.push_back(flow(1e9, {{0, 1}}));
  together.push_back(flow(1e9, {{0, 8}}));
  CHECK(rates(apart, 22.3, 2).back() == rates(together, 22.3, 2).back());
  CHECK(rates(apart, 22.3, 2).front() == rates(together, 22.3, 2).front());
}

}  // namespace chorale::test
