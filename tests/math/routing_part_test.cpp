// Tests ranks that split sequences. Each rank routes only its part of every sequence (layers/token_routing.hpp).
#include <algorithm>
#include <numeric>

#include "src/math/reference/routing.hpp"
#include "src/math/routing.hpp"
#include "tests/math/kernels.hpp"
#include "tests/math/routing_cases.hpp"

namespace chorale {
namespace {

// Divides the rows into groups of `s` rows, and copies the first `own` rows of each group.
Tensor first_of_each(Desk& desk, const Tensor& rows, std::int64_t s, std::int64_t own) {
  const Tensor some = desk.empty({rows.dim(0) / s * own, rows.dim(1)}, rows.dtype());
  for (std::int64_t sequence = 0; sequence < rows.dim(0) / s; ++sequence)
    copy(rows.narrow(sequence * s, own).slice(), some.narrow(sequence * own, own).slice());
  return some;
}

TEST_CASE("routing: a part of each sequence has the rows of the whole, and with its counts the gradients") {
  for (const Case& c : cases()) {
    if (c.rule.sequence < 2) continue;
    INFO(text_of(c));
    Desk desk;
    const std::int64_t s = c.rule.sequence, own = s / 2, experts = c.rule.experts;
    const auto part_of = [&](const Tensor& rows) { return first_of_each(desk, rows, s, own); };
    const Tensor logits = desk.random({c.tokens, experts}, DType::f32, 4);
    const Tensor dweights = desk.random({c.tokens, c.rule.chosen}, DType::f32);
    const Routing whole = route(logits, c.rule, c.leaf, desk.allocator, {});
    Routing part{part_of(whole.chosen), part_of(whole.weights), part_of(whole.places), {}, {}};
    std::vector<bool> dropped;
    for (const std::int32_t place : integers(part.places)) dropped.push_back(place < 0);
    number_rows(c.rule, {c.leaf, own}, part, {});
    CHECK(integers(part.places) == reference::places(integers(part.chosen), dropped));
    CHECK(std::accumulate(part.counts.begin(), part.counts.end(), std::int64_t{0}) == std::ranges::count(dropped, false));
    CHECK(std::accumulate(part.dropped.begin(), part.dropped.end(), std::int64_t{0}) == std::ranges::count(dropped, true));

    RoutingRule rule = c.rule;
    rule.sequence = own;
    rule.counts = desk.empty({c.tokens / s, experts}, DType::i64);
    count_choices(whole.chosen, rule.counts, {});
    const Tensor of_whole = desk.empty(logits.shape(), DType::f32), here = part_of(logits);
    routing_gradient(logits, c.rule, whole.chosen, whole.places, dweights, 0.7, of_whole, {});
    routing_gradient(here, rule, part.chosen, part.places, part_of(dweights), 0.7, here, {});
    CHECK(doubles(here) == doubles(part_of(of_whole)));
  }
}

}  // namespace
}  // namespace chorale
