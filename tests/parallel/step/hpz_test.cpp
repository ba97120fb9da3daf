// Tests hpz. ZeRO-3 shards among all replicas, and each group of near ranks also keeps a copy of the values for the backward
// pass. Results must be bit-identical to plain ZeRO-3. The backward pass must gather only among near ranks.
#include "tests/parallel/hybrid.hpp"

#include "parallel/plan/plan.hpp"

namespace chorale {
namespace {

TEST_CASE("secondary shards give the bits of ZeRO-3 in fast numerics", "[threads]") {
  for (const char* algorithm : {"ring", "auto"})
    for (const auto& [plain, hpz] : {std::pair{"dp4.z3", "dp2.rep2.z3.hpz"},
                                     {"dp4.z3", "dp1.rep4.z3.hpz"},
                                     {"dp8.z3", "dp4.rep2.z3.hpz"},
                                     {"dp4.pp2.z3.zb-h1", "dp2.rep2.pp2.z3.hpz.zb-h1"}}) {
      const auto seen = [&](const char* word) {
        const Layout layout = parse_layout(word, 0);
        TrainingOptions options = test::hybrid_options("fast", layout);
        options.shape = test::odd_shape();
        return test::seen_on(layout, options, algorithm);
      };
      INFO(hpz << " by " << algorithm);
      CHECK(difference(seen(plain), seen(hpz)) == "");
    }
}

TEST_CASE("exact numerics give the bits of one rank on layouts with secondary shards", "[threads]") {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = test::hybrid_options("exact", layout);
      options.recompute = recompute;
      return options;
    };
    const test::Seen expected = test::train_alone(options_of({}));
    for (const char* word :
         {"dp2.rep2.z3.hpz", "dp2.rep4.z3.hpz", "dp4.rep2.z3.hpz", "dp1.rep2.z3.hpz", "dp2.rep2.tp2.z3.hpz.sp",
          "dp2.rep2.pp2.z3.hpz", "dp2.rep2.pp2.v2.z3.hpz", "dp1.rep2.cp2.z3.hpz"}) {
      const Layout layout = parse_layout(word, 0);
      INFO(word);
      CHECK(difference(expected, test::seen_on(layout, options_of(layout), "auto")) == "");
    }
  }
}

TEST_CASE("exact numerics give the bits of one rank on layouts with experts and secondary shards", "[threads]") {
  const auto options_of = [](const Layout& layout) {
    TrainingOptions options = test::hybrid_options("exact", layout);
    options.shape = test::small_moe();
    return options;
  };
  const test::Seen expected = test::train_alone(options_of({}));
  for (const char* word : {"dp2.rep2.ep2.z3.hpz", "dp4.rep2.ep2.z3.hpz"}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word);
    CHECK(difference(expected, test::seen_on(layout, options_of(layout), "auto")) == "");
  }
}

TEST_CASE("with ring, secondary shards have the bytes of the closed forms") {
  for (const auto& [s, r] : {std::pair{2, 2}, {2, 4}, {4, 2}, {3, 2}, {1, 4}})
    for (const ModelShape& shape : {test::small_shape(), test::odd_shape()}) {
      const Layout layout = parse_layout(fmt::format("dp{}.rep{}.z3.hpz", s, r), 0);
      PlanRequest request{.options = test::hybrid_options("fast", layout), .layout = layout};
      constexpr std::int64_t m = 3;  // micro-batches
      const std::int64_t n = s * r;
      request.options.batch.micro = 1;
      request.options.batch.global = m * n;
      request.options.shape = shape;
      request.backends = {{"", "threads"}};
      test::Pretence here(request.options, layout, 0);
      const auto [psi, table] = test::sizes_of(here.training.buckets(), n);
      const RankPlan plan = plan_rank(request, 0);
      const auto sent = [&](const char* axis, Collective what) {
        const auto found = plan.axes.find(axis);
        return found == plan.axes.end() ? 0 : found->second.entries[static_cast<std::size_t>(what)].bytes;
      };
      const char* const all = s > 1 ? "dp+rep" : "rep";
      INFO(to_string(layout) << ", width " << shape.width);
      CHECK(sent(all, Collective::all_gather) ==
            4 * m * (psi + table) * (n - 1) / n);  // forward; the head gathers the table again
      CHECK(sent("dp", Collective::all_gather) == 4 * m * (psi + table) * (s - 1) / s);  // backward
      CHECK(sent(all, Collective::reduce_scatter) == 4 * m * psi * (n - 1) / n);
      for (const char* axis : {"dp", "rep", "dp+rep"}) CHECK(sent(axis, Collective::all_reduce) == 0);
      const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
      CHECK(held(Category::params) == 4 * (psi / n + psi / s));
      CHECK(held(Category::grads) == 4 * psi / n);
    }
}

TEST_CASE("the backward pass gathers secondary shards inside a host") {
  const Layout layout = parse_layout("dp4.rep2.z3.hpz", 0);
  PlanRequest request{.options = test::hybrid_options("fast", layout), .layout = layout};
  request.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  request.backends = {{"", "threads"}};
  std::int64_t crossing = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const RankPlan plan = plan_rank(request, rank);
    for (const Account::Entry& entry : plan.axes.at("dp").entries) CHECK(entry.crossing == 0);
    for (const Account::Entry& entry : plan.axes.at("dp+rep").entries) crossing += entry.crossing;
  }
  CHECK(crossing > 0);
}

}  // namespace
}  // namespace chorale
