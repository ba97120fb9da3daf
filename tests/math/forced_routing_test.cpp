// Tests that the choices of forced routings are valid, depend only on block and position, and give experts the promised
// loads. Weights and gradients must be the same as if the router had made these choices.
#include "src/math/forced_routing.hpp"

#include <algorithm>

#include "src/math/reference/routing.hpp"
#include "src/math/routing.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

constexpr ForcedRouting all_routings[] = {ForcedRouting::balanced, ForcedRouting::uniform, ForcedRouting::zipf,
                                          ForcedRouting::one};

RoutingRule rule_for(std::int64_t experts, std::int64_t chosen, std::int64_t sequence, double capacity = 0) {
  return {.experts = experts, .chosen = chosen, .capacity = capacity, .sequence = sequence};
}

// The share of choices that each expert gets, over all positions of several blocks.
std::vector<double> shares(ForcedRouting routing, const RoutingRule& rule, std::int64_t blocks) {
  std::vector<double> share(static_cast<std::size_t>(rule.experts));
  for (std::int64_t block = 0; block < blocks; ++block)
    for (const std::int32_t expert : forced_choices(routing, rule, block))
      share[static_cast<std::size_t>(expert)] += 1 / static_cast<double>(rule.sequence * blocks);
  return share;
}

}  // namespace

TEST_CASE("forced routing: a token's experts differ and ascend, and depend on the block and the position only") {
  for (const ForcedRouting routing : all_routings)
    for (const auto& [experts, chosen] : {std::pair{1, 1}, {5, 5}, {6, 2}, {64, 8}}) {
      INFO(name_of(routing) << ", " << chosen << " of " << experts);
      const auto choices = forced_choices(routing, rule_for(experts, chosen, 40), 3);
      REQUIRE(std::ssize(choices) == 40 * chosen);
      for (std::size_t i = 0; i < choices.size(); ++i) {
        CHECK((choices[i] >= 0 && choices[i] < experts));
        if (i % static_cast<std::size_t>(chosen) > 0) CHECK(choices[i] > choices[i - 1]);
      }
      const auto shorter = forced_choices(routing, rule_for(experts, chosen, 17), 3);
      CHECK(std::equal(shorter.begin(), shorter.end(), choices.begin()));
      const bool drawn = (routing == ForcedRouting::uniform || routing == ForcedRouting::zipf) && chosen < experts;
      CHECK((forced_choices(routing, rule_for(experts, chosen, 40), 4) != choices) == drawn);
    }
  // Fixed expected values, so that a change of the definition is detected.
  CHECK(forced_choices(ForcedRouting::balanced, rule_for(3, 2, 3), 0) == reference::Choices{0, 1, 0, 2, 1, 2});
  CHECK(forced_choices(ForcedRouting::one, rule_for(8, 2, 2), 0) == reference::Choices{0, 1, 0, 1});
  CHECK(forced_choices(ForcedRouting::uniform, rule_for(8, 2, 4), 1) == reference::Choices{0, 1, 0, 4, 0, 7, 1, 2});
  CHECK(forced_choices(ForcedRouting::zipf, rule_for(8, 2, 4), 1) == reference::Choices{0, 1, 0, 4, 0, 1, 1, 2});
}

TEST_CASE("forced routing: uniform gives all experts equal loads, zipf gives expert e a share of 1/(e + 1)") {
  const std::int64_t experts = 8, positions = 4096, blocks = 4;
  const auto within_4_sigma = [](double share, double expected) {
    const double sigma = std::sqrt(expected * (1 - expected) / static_cast<double>(positions * blocks));
    return std::abs(share - expected) <= 4 * sigma;
  };
  for (const std::int64_t k : {1, 3})
    for (const double share : shares(ForcedRouting::uniform, rule_for(experts, k, positions), blocks))
      CHECK(within_4_sigma(share, static_cast<double>(k) / static_cast<double>(experts)));
  double sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) sum += 1 / static_cast<double>(e + 1);
  const auto zipf = shares(ForcedRouting::zipf, rule_for(experts, 1, positions), blocks);
  for (std::size_t e = 0; e < zipf.size(); ++e) CHECK(within_4_sigma(zipf[e], 1 / static_cast<double>(e + 1) / sum));
  // Choices are drawn without replacement, so the second choice follows Zipf's law among the remaining experts.
  const auto pairs = shares(ForcedRouting::zipf, rule_for(3, 2, positions), blocks);
  const double p[] = {6.0 / 11, 3.0 / 11, 2.0 / 11};
  for (std::size_t left_out = 0; left_out < 3; ++left_out) {
    const double a = p[(left_out + 1) % 3], b = p[(left_out + 2) % 3];
    CHECK(within_4_sigma(1 - pairs[left_out], a * b / (1 - a) + a * b / (1 - b)));
  }
}

TEST_CASE("forced routing: weights are the router's, and a plan has the counts of a run") {
  for (const ForcedRouting routing : all_routings)
    for (const double capacity : {0.0, 0.5, 1.25}) {
      INFO(name_of(routing) << ", capacity " << capacity);
      Desk desk;
      PhantomMemory phantom;
      Allocator nowhere(phantom, desk.ledger);
      const std::int64_t tokens = 36, s = 12, k = 2, experts = 5, leaf = 4;
      const RoutingRule rule = rule_for(experts, k, s, capacity);
      const auto forced = forced_choices(routing, rule, 2);
      const Tensor logits = desk.random({tokens, experts}, DType::f32, 4);
      const Routing run = route(logits, rule, leaf, desk.allocator, {2}, forced);
      const auto chosen = run.chosen.values<std::int32_t>(), places = run.places.values<std::int32_t>();
      const auto values = doubles(logits), weights = doubles(run.weights);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const reference::Choices own(chosen.begin() + t * k, chosen.begin() + (t + 1) * k);
        CHECK(std::equal(own.begin(), own.end(), forced.begin() + t % s * k));
        const auto wanted =
            reference::weights({values.begin() + t * experts, values.begin() + (t + 1) * experts}, own, rule);
        for (std::int64_t j = 0; j < k; ++j) {
          const auto i = static_cast<std::size_t>(t * k + j);
          CHECK(std::abs(weights[i] - (places[i] < 0 ? 0 : wanted[static_cast<std::size_t>(j)])) <= 1e-6);
        }
      }
      const Tensor planned(nowhere, {tokens, experts}, DType::f32, Category::activations);
      const Routing plan = route(planned, rule, leaf, nowhere, {}, forced);
      if (capacity == 0) CHECK(plan.counts == run.counts);
      const auto per_sequence = [&](const std::vector<std::int64_t>& counts) {  // [E, sequences]: any leaf can have drops
        std::vector<std::int64_t> sums(counts.size() / static_cast<std::size_t>(s / leaf));
        for (std::size_t i = 0; i < counts.size(); ++i) sums[i / static_cast<std::size_t>(s / leaf)] += counts[i];
        return sums;
      };
      CHECK(per_sequence(plan.counts) == per_sequence(run.counts));
      for (std::int64_t e = 0; e < experts; ++e)
        CHECK(counts_of(forced, rule, s)[static_cast<std::size_t>(e)] ==
              per_sequence(run.counts)[static_cast<std::size_t>(e * tokens / s)]);
    }
}

TEST_CASE("forced routing: a table for other sequences is refused") {
  Desk desk;
  const RoutingRule rule = rule_for(4, 2, 6);
  const auto forced = forced_choices(ForcedRouting::balanced, rule_for(4, 2, 5), 0);
  CHECK_THROWS(route(desk.random({12, 4}, DType::f32), rule, 6, desk.allocator, {}, forced));
  CHECK_THROWS(named<ForcedRouting>("learned"));
  CHECK_THROWS(named<ForcedRouting>("Zipf"));
}
