#include "src/math/forced_routing.hpp"
#include "tests/math/cuda/gpu.hpp"
#include "tests/math/routing_cases.hpp"

using namespace chorale;

namespace {

// The cases of the host's tests, plus routers with more experts than a warp has lanes.
std::vector<Case> cases_of_device() {
  std::vector<Case> all = cases();
  for (const RouterScore score : scores)
    for (const double capacity : {0.0, 0.7})
      for (const auto& [experts, chosen, groups, groups_chosen] :
           {std::tuple{33, 4, 1, 1}, {64, 8, 8, 4}, {70, 33, 1, 1}, {256, 8, 8, 3}})
        all.push_back(case_of(score, capacity, {experts, chosen, groups, groups_chosen, 40, 80, 20}));
  return with_balance(std::move(all));
}

// Random logits, except that the first tokens have equal, infinite and NaN logits.
Tensor logits_of(Desk& desk, const Case& c, DType dtype) {
  const std::int64_t experts = c.rule.experts;
  const Tensor logits = desk.random({c.tokens, experts}, dtype, 4);
  for (std::int64_t e = 0; e < experts; ++e) {
    put(logits, e, e % 3);
    if (c.tokens > 1) put(logits, experts + e, e % 2 ? -0.0 : 0.0);
    if (c.tokens > 2 && e % 5 == 1) put(logits, 2 * experts + e, NAN);
    if (c.tokens > 3 && e % 4 == 1) put(logits, 3 * experts + e, e % 8 == 1 ? INFINITY : -INFINITY);
  }
  return logits;
}

RoutingRule sent(Gpu& gpu, RoutingRule rule) {
  for (Tensor* const of_experts : {&rule.bias, &rule.counts})
    if (*of_experts) *of_experts = gpu.sent(*of_experts);
  return rule;
}

void check_routing(Gpu& gpu, const Case& c, DType dtype, std::span<const std::int32_t> forced) {
  Desk desk;
  const Tensor logits = logits_of(desk, c, dtype), dweights = desk.random({c.tokens, c.rule.chosen}, dtype);
  const RoutingRule rule_there = sent(gpu, c.rule);
  const Routing here = route(logits, c.rule, c.leaf, desk.allocator, {}, forced);
  const Routing there = route(gpu.sent(logits), rule_there, c.leaf, gpu.allocator(), gpu.queue(), forced);
  CHECK(there.counts == here.counts);
  CHECK(same_numbers(gpu.fetched(desk, there.chosen), here.chosen));
  CHECK(same_numbers(gpu.fetched(desk, there.places), here.places));
  const Tensor weights = gpu.fetched(desk, there.weights);
  for (std::int64_t t = dtype == DType::f32 ? 0 : std::min<std::int64_t>(4, c.tokens); t < c.tokens; ++t) {
    const Tensor found = weights.narrow(t, 1), wanted = here.weights.narrow(t, 1);
    if (dtype == DType::f32)
      CHECK(same_numbers(found, wanted));
    else
      CHECK(distance(doubles(found), doubles(wanted)) <= 1e-14);
  }
  const auto gradient = [&](const auto& t, const Queue& queue) {
    const RoutingRule& rule = queue.device ? rule_there : c.rule;
    routing_gradient(t[0], rule, t[1], t[2], t[3], 0.7, t[4], queue);
    routing_gradient(t[0], rule, t[1], t[2], t[3], 0.7, t[0], queue);  // in place
  };
  const Tensor sound = desk.random(logits.shape(), dtype, 4), dlogits = desk.random(logits.shape(), dtype);
  if (dtype == DType::f32) gpu.compare({logits, here.chosen, here.places, dweights, dlogits}, 0, gradient);
  gpu.compare({sound, here.chosen, here.places, dweights, dlogits}, dtype == DType::f32 ? 0 : 1e-13, gradient);
}

}  // namespace

TEST_CASE("device: routings and their gradients match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Case& c : cases_of_device()) {
      INFO(name_of(dtype) << ": " << text_of(c));
      check_routing(gpu, c, dtype, {});
    }
}

TEST_CASE("device: counts of choices, gradients by them and numbers of rows match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const Case& c : cases_of_device()) {
    INFO(text_of(c));
    Desk desk;
    const Tensor logits = desk.random({c.tokens, c.rule.experts}, DType::f32, 4);
    const Tensor dweights = desk.random({c.tokens, c.rule.chosen}, DType::f32);
    const Tensor counts = desk.empty({c.tokens / c.rule.sequence, c.rule.experts}, DType::i64);
    Routing routing = route(logits, c.rule, c.leaf, desk.allocator, {});
    gpu.compare({routing.chosen, counts, logits, routing.places, dweights}, 0, [&](const auto& t, const Queue& queue) {
      count_choices(t[0], t[1], queue);
      RoutingRule rule = queue.device ? sent(gpu, c.rule) : c.rule;
      rule.counts = t[1];
      routing_gradient(t[2], rule, t[0], t[3], t[4], 0.7, t[2], queue);
    });
    for (std::int64_t i = 0; i < routing.places.count(); i += 3) put(routing.places, i, -1);  // more drops
    Routing there{gpu.sent(routing.chosen), gpu.sent(routing.weights), gpu.sent(routing.places), {}, {}};
    number_rows(c.rule, c.leaf, routing, {});
    number_rows(c.rule, c.leaf, there, gpu.queue());
    CHECK(there.counts == routing.counts);
    CHECK(there.dropped == routing.dropped);
    CHECK(same_numbers(gpu.fetched(desk, there.places), routing.places));
  }
}

TEST_CASE("device: forced routings match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const double capacity : {0.0, 0.7})
    for (const ForcedRouting routing : {ForcedRouting::balanced, ForcedRouting::zipf, ForcedRouting::one}) {
      const Case c{{.experts = 36, .chosen = 3, .capacity = capacity, .sequence = 40}, 80, 20};
      INFO(static_cast<int>(routing) << ": " << text_of(c));
      check_routing(gpu, c, DType::f32, forced_choices(routing, c.rule, 2));
    }
}
