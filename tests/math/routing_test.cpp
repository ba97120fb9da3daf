#include "src/math/routing.hpp"

#include "src/math/reference/routing.hpp"
#include "tests/math/kernels.hpp"
#include "tests/math/routing_cases.hpp"
#include "tests/refused.hpp"

using namespace chorale;
using test::refused;

namespace {

reference::Numbers row_of(const reference::Numbers& table, std::int64_t row, std::int64_t width) {
  return {table.begin() + row * width, table.begin() + (row + 1) * width};
}

// The reference's routing of all tokens. `weights` are the weights before drops.
struct Wanted {
  reference::Choices chosen, places;
  reference::Numbers weights;
  std::vector<bool> dropped;

  Wanted(const reference::Numbers& logits, const RoutingRule& rule) {
    reference::Numbers ranks;
    for (std::int64_t t = 0; t < std::ssize(logits) / rule.experts; ++t) {
      const auto row = row_of(logits, t, rule.experts);
      const auto experts = reference::choose(row, rule);
      const auto weight = reference::weights(row, experts, rule);
      chosen.insert(chosen.end(), experts.begin(), experts.end());
      const auto rank = reference::ranks(row, experts, rule);
      weights.insert(weights.end(), weight.begin(), weight.end());
      ranks.insert(ranks.end(), rank.begin(), rank.end());
    }
    dropped = reference::drops(chosen, ranks, rule);
    places = reference::places(chosen, dropped);
  }
};

Tensor logits_of(Desk& desk, const std::vector<std::vector<double>>& rows, DType dtype = DType::f32) {
  const auto width = std::ssize(rows[0]);
  const Tensor logits = desk.empty({std::ssize(rows), width}, dtype);
  for (std::int64_t i = 0; i < logits.count(); ++i)
    put(logits, i, rows[static_cast<std::size_t>(i / width)][static_cast<std::size_t>(i % width)]);
  return logits;
}

bool same_routing(const Routing& a, const Routing& b) {
  return same_bits(a.chosen, b.chosen) && same_bits(a.weights, b.weights) && same_bits(a.places, b.places) &&
         a.counts == b.counts;
}

}  // namespace

TEST_CASE("routing: choices, weights and places are the reference's, with the same bits on one thread and several") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Case& c : with_balance(cases())) {
      INFO(name_of(dtype) << ": " << text_of(c));
      Desk desk;
      const Tensor logits = desk.random({c.tokens, c.rule.experts}, dtype, 4);
      const Routing routing = route(logits, c.rule, c.leaf, desk.allocator, {1});
      Wanted wanted(doubles(logits), c.rule);
      for (std::size_t i = 0; i < wanted.weights.size(); ++i)
        if (wanted.dropped[i]) wanted.weights[i] = 0;
      REQUIRE(integers(routing.chosen) == wanted.chosen);
      CHECK(integers(routing.places) == wanted.places);
      CHECK(distance(doubles(routing.weights), wanted.weights) <= (dtype == DType::f64 ? 1e-14 : 1e-6));
      const std::int64_t leaves = c.tokens / c.leaf;
      std::vector<std::int64_t> counts(static_cast<std::size_t>(c.rule.experts * leaves));
      for (std::int64_t i = 0; i < c.tokens * c.rule.chosen; ++i) {
        const auto choice = static_cast<std::size_t>(i);
        if (wanted.places[choice] >= 0)
          ++counts[static_cast<std::size_t>(wanted.chosen[choice] * leaves + i / c.rule.chosen / c.leaf)];
      }
      CHECK(routing.counts == counts);
      for (const int threads : {2, 5})
        CHECK(same_routing(routing, route(logits, c.rule, c.leaf, desk.allocator, {threads})));
    }
}

// The loss as a function of the logits: Σ dweights·weights over the choices that were not dropped, plus the balance loss and
// the z-loss. Choices and drops stay fixed, as the gradient assumes.
TEST_CASE("routing: the gradient matches finite differences of the reference") {
  const double factor = 8;
  for (const Case& c : with_balance(cases())) {
    INFO(text_of(c));
    const std::int64_t experts = c.rule.experts, k = c.rule.chosen;
    Desk desk;
    const Tensor logits = desk.random({c.tokens, experts}, DType::f64, 2);
    const Tensor dweights = desk.random({c.tokens, k}, DType::f64), dlogits = desk.empty(logits.shape(), DType::f64);
    const Routing routing = route(logits, c.rule, c.leaf, desk.allocator, {});
    const auto chosen = integers(routing.chosen), places = integers(routing.places);
    const auto above = doubles(dweights);
    const auto loss = [&](const reference::Numbers& at) {
      double sum = factor * reference::router_losses(at, chosen, c.rule);
      for (std::int64_t t = 0; t < c.tokens; ++t) {
        const reference::Choices own(chosen.begin() + t * k, chosen.begin() + (t + 1) * k);
        const auto weights = reference::weights(row_of(at, t, experts), own, c.rule);
        for (std::int64_t j = 0; j < k; ++j) {
          const auto i = static_cast<std::size_t>(t * k + j);
          if (places[i] >= 0) sum += above[i] * weights[static_cast<std::size_t>(j)];
        }
      }
      return sum;
    };
    routing_gradient(logits, c.rule, routing.chosen, routing.places, dweights, factor, dlogits, {});
    const auto wanted = numerical_gradient(loss, doubles(logits));
    CHECK(distance(doubles(dlogits), wanted) <= 1e-6);

    const Tensor logits32 = desk.empty(logits.shape(), DType::f32), dweights32 = desk.empty(dweights.shape(), DType::f32);
    for (std::int64_t i = 0; i < logits.count(); ++i) put(logits32, i, doubles(logits)[static_cast<std::size_t>(i)]);
    for (std::int64_t i = 0; i < dweights.count(); ++i) put(dweights32, i, above[static_cast<std::size_t>(i)]);
    const Tensor one = desk.empty(logits.shape(), DType::f32), several = copy_of(desk, logits32);
    routing_gradient(logits32, c.rule, routing.chosen, routing.places, dweights32, factor, one, {1});
    CHECK(distance(doubles(one), doubles(dlogits)) <= 1e-5);
    routing_gradient(several, c.rule, routing.chosen, routing.places, dweights32, factor, several, {3});  // in place
    CHECK(same_bits(one, several));
  }
}

TEST_CASE("routing: without the two losses, the gradient is that of the weights alone") {
  for (const RouterScore score : scores) {
    Desk desk;
    RoutingRule rule{.experts = 6, .chosen = 2, .score = score, .sequence = 4, .balance = 0.1, .z = 0.1};
    const Tensor logits = desk.random({8, 6}, DType::f64), none = desk.filled({8, 2}, DType::f64, 0);
    const Tensor some = desk.random({8, 2}, DType::f64);
    const Routing routing = route(logits, rule, 4, desk.allocator, {});
    const auto gradient = [&](const Tensor& dweights, double factor) {
      const Tensor dlogits = desk.empty({8, 6}, DType::f64);
      routing_gradient(logits, rule, routing.chosen, routing.places, dweights, factor, dlogits, {});
      return doubles(dlogits);
    };
    const auto losses = gradient(none, 3), both = gradient(some, 3), weights = gradient(some, 0);
    rule.balance = rule.z = 0;
    CHECK(gradient(none, 3) == std::vector<double>(48));
    CHECK(distance(gradient(some, 3), weights) <= 1e-13);
    std::vector<double> sum(48);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = losses[i] + weights[i];
    CHECK(distance(sum, both) <= 1e-13);
  }
}

TEST_CASE("routing: a sequence is routed alike in every micro-batch") {
  for (const Case& c : with_balance(cases())) {
    if (c.tokens == 1) continue;
    INFO(text_of(c));
    Desk desk;
    const std::int64_t s = c.rule.sequence, leaves = s / c.leaf, sequences = c.tokens / s;
    const Tensor logits = desk.random({c.tokens, c.rule.experts}, DType::f32, 4);
    const Tensor dweights = desk.random({c.tokens, c.rule.chosen}, DType::f32);
    const Tensor whole = desk.empty(logits.shape(), DType::f32), part = desk.empty({s, c.rule.experts}, DType::f32);
    const Routing all = route(logits, c.rule, c.leaf, desk.allocator, {});
    routing_gradient(logits, c.rule, all.chosen, all.places, dweights, 1, whole, {});
    for (std::int64_t i = 0; i < sequences; ++i) {
      const Tensor own = logits.narrow(i * s, s);
      const Routing alone = route(own, c.rule, c.leaf, desk.allocator, {});
      routing_gradient(own, c.rule, alone.chosen, alone.places, dweights.narrow(i * s, s), 1, part, {});
      CHECK(same_bits(alone.chosen, all.chosen.narrow(i * s, s)));
      CHECK(same_bits(alone.weights, all.weights.narrow(i * s, s)));
      CHECK(same_bits(part, whole.narrow(i * s, s)));
      for (std::int64_t e = 0; e < c.rule.experts; ++e)
        for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
          CHECK(alone.counts[static_cast<std::size_t>(e * leaves + leaf)] ==
                all.counts[static_cast<std::size_t>((e * sequences + i) * leaves + leaf)]);
    }
  }
}

TEST_CASE("routing: ties go to the smaller expert, and a full expert drops the later of equal tokens") {
  for (const RouterScore score : scores) {
    Desk desk;
    const RoutingRule rule{.experts = 4, .chosen = 2, .score = score, .capacity = 1.5, .sequence = 4};
    const Tensor equal = desk.filled({4, 4}, DType::f32, 0);  // all tokens choose experts 0 and 1, whose capacity is 3
    put(equal, 7, -0.0);
    put(equal, 4, -0.0);  // −0 equals 0
    const Routing routing = route(equal, rule, 2, desk.allocator, {});
    CHECK(integers(routing.chosen) == reference::Choices{0, 1, 0, 1, 0, 1, 0, 1});
    CHECK(routing.counts == std::vector<std::int64_t>{2, 1, 2, 1, 0, 0, 0, 0});
    CHECK(routing.dropped == std::vector<std::int64_t>{1, 1, 0, 0});
    CHECK(integers(routing.places) == reference::Choices{0, 3, 1, 4, 2, 5, -1, -1});
    const auto weights = doubles(routing.weights);
    const double weight = score == RouterScore::softmax ? 0.25 : 0.5;
    CHECK(weights == std::vector<double>{weight, weight, weight, weight, weight, weight, 0, 0});
  }
}

// All weights are 1. The token with the highest logit does not have the highest score.
TEST_CASE("routing: with one expert per token, an expert drops the tokens to which other experts are as good") {
  Desk desk;
  const RoutingRule rule{.experts = 2, .chosen = 1, .capacity = 1, .sequence = 4};  // capacity: two tokens per expert
  const Tensor logits = logits_of(desk, {{9, 8}, {1, -5}, {3, 2.5}, {2, 0}});
  const Routing routing = route(logits, rule, 4, desk.allocator, {});
  CHECK(integers(routing.chosen) == reference::Choices(4, 0));
  CHECK(integers(routing.places) == reference::Choices{-1, 0, -1, 1});
  CHECK(doubles(routing.weights) == std::vector<double>{0, 1, 0, 1});
}

TEST_CASE("routing: an expert that all tokens choose keeps those with the highest scores, in their order") {
  Desk desk;
  const RoutingRule rule{.experts = 2, .chosen = 1, .score = RouterScore::sigmoid, .capacity = 1, .sequence = 6};
  const Tensor logits = logits_of(desk, {{3, 0}, {5, 0}, {1, 0}, {4, 0}, {5, 0}, {2, 0}});
  const Routing routing = route(logits, rule, 3, desk.allocator, {});
  CHECK(integers(routing.chosen) == reference::Choices(6, 0));
  CHECK(integers(routing.places) == reference::Choices{-1, 0, -1, 1, 2, -1});
  CHECK(routing.counts == std::vector<std::int64_t>{1, 2, 0, 0});
  CHECK(rule.most_rows(1, 6, 2) == 6);
}

TEST_CASE("routing: biases change the choice of experts and groups, but not the weights") {
  Desk desk;
  RoutingRule rule{.experts = 4, .chosen = 2, .score = RouterScore::sigmoid, .groups = 2, .groups_chosen = 1};
  const Tensor logits = logits_of(desk, {{1, 1, 0, 0}});
  CHECK(integers(route(logits, rule, 1, desk.allocator, {}).chosen) == reference::Choices{0, 1});
  rule.bias = desk.filled({4}, DType::f32, 0);
  put(rule.bias, 3, 1);
  const Routing biased = route(logits, rule, 1, desk.allocator, {});
  CHECK(integers(biased.chosen) == reference::Choices{2, 3});
  CHECK(doubles(biased.weights) == std::vector<double>{0.5, 0.5});
}

TEST_CASE("routing: only experts of the best groups are chosen") {
  Desk desk;
  RoutingRule rule{.experts = 6, .chosen = 2, .groups = 3, .groups_chosen = 1, .sequence = 1};
  // The groups' sums of their best two scores are 5, 6 and 5. The highest single score is in the first group.
  const Tensor logits = logits_of(desk, {{5, 0, 3, 3, 4, 1}});
  CHECK(integers(route(logits, rule, 1, desk.allocator, {}).chosen) == reference::Choices{2, 3});
  rule.groups_chosen = 2;  // only one score counts per group: 5, 3 and 4
  CHECK(integers(route(logits, rule, 1, desk.allocator, {}).chosen) == reference::Choices{0, 4});
}

TEST_CASE("routing: extreme logits give finite weights and gradients") {
  for (const RouterScore score : scores) {
    INFO(static_cast<int>(score));
    Desk desk;
    const RoutingRule rule{.experts = 4, .chosen = 2, .score = score, .sequence = 3, .balance = 1};
    const Tensor logits = logits_of(desk, {{3e38, 1, 2, -3e38}, {-3e38, -3e38, -3e38, -3e38}, {-200, -300, -400, -500}});
    const Tensor dweights = desk.filled({3, 2}, DType::f32, 1);
    const Routing routing = route(logits, rule, 3, desk.allocator, {});
    routing_gradient(logits, rule, routing.chosen, routing.places, dweights, 1, logits, {});
    for (const Tensor& tensor : {routing.weights, logits})
      for (const double value : doubles(tensor)) CHECK(std::isfinite(value));
  }
}

TEST_CASE("routing: a NaN or an infinite logit reaches the weights, and all places stay within the rows") {
  for (const double poison : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
    for (const Case& c : with_balance(cases())) {
      // σ(∞) is 1, an ordinary score.
      if (std::isinf(poison) && c.rule.score == RouterScore::sigmoid) continue;
      INFO(poison << ": " << text_of(c));
      Desk desk;
      const Tensor logits = desk.random({c.tokens, c.rule.experts}, DType::f32, 4);
      put(logits, logits.count() - 1, poison);  // the last expert loses ties, so only its score can win
      const Routing routing = route(logits, c.rule, c.leaf, desk.allocator, {2});
      std::int64_t rows = 0;
      for (const std::int64_t count : routing.counts) rows += count;
      for (const std::int32_t expert : integers(routing.chosen)) CHECK((expert >= 0 && expert < c.rule.experts));
      for (const std::int32_t place : integers(routing.places)) CHECK((place >= -1 && place < rows));
      const auto weights = doubles(routing.weights);
      CHECK(std::ranges::any_of(weights, [](double weight) { return std::isnan(weight); }));
      const Tensor dweights = desk.filled(routing.weights.shape(), DType::f32, 1);
      routing_gradient(logits, c.rule, routing.chosen, routing.places, dweights, 1, logits, {2});
      const auto gradient = doubles(logits);
      CHECK(std::ranges::any_of(gradient, [](double slope) { return std::isnan(slope); }));
    }
}

TEST_CASE("routing: phantom logits give the counts of balanced routing") {
  for (const Case& c : cases()) {
    INFO(text_of(c));
    Desk desk;
    PhantomMemory phantom;
    Allocator nowhere(phantom, desk.ledger);
    const std::int64_t experts = c.rule.experts, k = c.rule.chosen;
    const Tensor planned(nowhere, {c.tokens, experts}, DType::f32, Category::activations);
    const Routing plan = route(planned, c.rule, c.leaf, nowhere, {});
    CHECK((plan.chosen.phantom() && plan.weights.phantom() && plan.places.phantom()));
    routing_gradient(planned, c.rule, plan.chosen, plan.places, plan.weights, 1, planned, {});
    if (c.rule.groups_chosen < c.rule.groups) continue;                        // limits on groups can exclude these experts
    const Tensor logits = desk.filled({c.tokens, experts}, DType::f32, -200);  // so that all weights are equal
    for (std::int64_t i = 0; i < c.tokens * k; ++i) put(logits, i / k * experts + i % (c.rule.sequence * k) % experts, 1);
    const Routing routing = route(logits, c.rule, c.leaf, desk.allocator, {});
    CHECK(routing.counts == plan.counts);
    std::int64_t rows = 0;
    for (const std::int64_t count : plan.counts) rows += count;
    CHECK(rows <= c.rule.most_rows(c.tokens / c.rule.sequence, c.rule.sequence, experts));
    if (c.rule.capacity >= 1 || c.rule.capacity == 0) CHECK(rows == c.tokens * k);
  }
}

TEST_CASE("routing: the capacity is rounded up once, and never exceeds the sequence") {
  const auto most = [](double capacity, std::int64_t k, std::int64_t s, std::int64_t experts) {
    return RoutingRule{.experts = experts, .chosen = k, .capacity = capacity, .sequence = s}.most_of_expert();
  };
  CHECK(most(1, 2, 8, 4) == 4);
  CHECK(most(1.25, 2, 7, 4) == 5);
  CHECK(most(1.1, 1, 100, 10) == 11);  // in doubles 1.1·100/10 is above 11
  CHECK(most(0.01, 1, 4, 8) == 1);
  CHECK(most(1e30, 2, 8, 4) == 8);
  CHECK(most(0, 2, 8, 4) == 8);
  const RoutingRule tight{.experts = 8, .chosen = 2, .capacity = 0.5, .sequence = 16};  // two rows per expert and sequence
  CHECK(tight.most_rows(2, 16, 8) == 32);
  CHECK(tight.most_rows(2, 16, 2) == 8);
  CHECK(tight.most_rows(2, 3, 2) == 8);  // each part has three tokens, all of which can be kept
  CHECK(tight.most_rows(2, 1, 2) == 4);
  const RoutingRule loose{.experts = 8, .chosen = 2, .capacity = 3, .sequence = 16};  // twelve rows per expert and sequence
  CHECK(loose.most_rows(2, 16, 8) == 64);
  CHECK(loose.most_rows(2, 16, 2) == 48);
  CHECK(loose.most_rows(2, 16, 1) == 24);
  const RoutingRule dropless{.experts = 8, .chosen = 2, .sequence = 16};
  CHECK(dropless.most_rows(2, 16, 8) == 64);
  CHECK(dropless.most_rows(2, 16, 1) == 32);
}

TEST_CASE("routing: impossible rules are refused in three lines") {
  const auto text = [](const RoutingRule& rule) { return refused([&] { rule.check(); }); };
  const auto holds = [](const std::string& whole, const char* part) { return whole.find(part) != std::string::npos; };
  CHECK(text({.experts = 8, .chosen = 8}) == "accepted");
  CHECK(holds(text({.experts = 4, .chosen = 5}), "it chooses 5 of 4 experts"));
  CHECK(holds(text({.experts = 4, .chosen = 0}), "--moe-router-topk"));
  CHECK(holds(text({.experts = 8, .chosen = 2, .groups = 3}), "8 experts, 3 groups"));
  CHECK(holds(text({.experts = 8, .chosen = 2, .groups = 0}), "--moe-router-num-groups"));
  CHECK(holds(text({.experts = 8, .chosen = 3, .groups = 4, .groups_chosen = 1}), "3 experts from 1 of 4 groups with 2"));
  CHECK(holds(text({.experts = 8, .chosen = 3, .groups = 4, .groups_chosen = 5}), "--moe-router-group-topk"));
  CHECK(holds(text({.capacity = -0.5}), "the factor is -0.5"));
  CHECK(holds(text({.capacity = NAN}), "--moe-expert-capacity-factor"));
  CHECK(holds(text({.scale = 0}), "--moe-router-topk-scaling-factor"));
  CHECK(holds(text({.balance = -1}), "balance -1"));
  CHECK(holds(text({.z = INFINITY}), "--moe-z-loss-coeff"));
}

TEST_CASE("routing: tensors that do not fit are refused") {
  Desk desk;
  const RoutingRule rule{.experts = 4, .chosen = 2, .capacity = 1, .sequence = 4};
  const Tensor logits = desk.random({8, 4}, DType::f32), dweights = desk.random({8, 2}, DType::f32);
  const Routing routing = route(logits, rule, 2, desk.allocator, {});
  CHECK_THROWS(route(logits, rule, 3, desk.allocator, {}));
  CHECK_THROWS(route(logits.narrow(0, 6), rule, 2, desk.allocator, {}));
  CHECK_THROWS(route(desk.random({8, 5}, DType::f32), rule, 2, desk.allocator, {}));
  CHECK_THROWS(route(desk.random({8, 4}, DType::bf16), rule, 2, desk.allocator, {}));
  CHECK_THROWS(route(logits, {.experts = 4, .chosen = 5}, 2, desk.allocator, {}));
  CHECK_THROWS(routing_gradient(logits, rule, routing.chosen, routing.places, logits, 1, logits, {}));
  RoutingRule biased = rule, balanced = rule;
  biased.bias = desk.random({8}, DType::f32);
  balanced.counts = desk.random({4}, DType::f32);
  CHECK_THROWS_WITH(route(logits, biased, 2, desk.allocator, {}), says("need that many elements of f32, got [8] of f32"));
  CHECK_THROWS_WITH(route(logits, balanced, 2, desk.allocator, {}),
                    says("of i64 for equal parts of 8 tokens, got [4] of f32"));
}

TEST_CASE("how fast routing is", "[!benchmark]") {
  for (const auto& [experts, k] : {std::pair{8, 2}, std::pair{64, 8}, std::pair{256, 8}})
    for (const double capacity : {0.0, 1.25}) {
      Desk desk;
      const RoutingRule rule{.experts = experts,
                             .chosen = k,
                             .score = RouterScore::softmax,
                             .capacity = capacity,
                             .sequence = 1024,
                             .balance = 0.01};
      const Tensor logits = desk.random({2048, experts}, DType::f32), dweights = desk.random({2048, k}, DType::f32);
      const Tensor dlogits = desk.empty(logits.shape(), DType::f32);
      const Routing routing = route(logits, rule, 256, desk.allocator, {});
      BENCHMARK(moving(capacity > 0 ? "route with drops" : "route", logits, logits.bytes())) {
        return route(logits, rule, 256, desk.allocator, {});
      };
      BENCHMARK(moving("routing gradient", logits, 2 * logits.bytes())) {
        routing_gradient(logits, rule, routing.chosen, routing.places, dweights, 1, dlogits, {});
      };
    }
}
