#include "collectives/schedule/side_by_side.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/choice/selection.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/step_graph.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/prediction/sample_prices.hpp"

using namespace chorale;
using prediction::Site;

namespace {

std::vector<Schedule> pair_of(std::int64_t count) {
  return plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"),
                        Problem::even(Collective::all_reduce, count, 2, 0, true));
}

}  // namespace

TEST_CASE("schedules side by side send only within their groups") {
  const SideBySide all{{{0, 2}, {1, 3}}};
  const auto one = pair_of(64), ranks = side_by_side(one, all);
  REQUIRE(ranks.size() == 4);
  const auto messages = StepGraph(ranks).messages();
  CHECK(messages.size() == 2 * StepGraph(one).messages().size());
  for (const Message& message : messages) CHECK(message.from % 2 == message.to % 2);
  CHECK_THROWS_WITH(side_by_side(pair_of(64), {{{0, 1, 2}, {3, 4, 5}}}),
                    says("a call of 2 ranks does not fit a group of 3"));
  CHECK_THROWS_WITH(side_by_side(pair_of(64), {{{0, 1}, {0, 1}}}), says("rank 2 is in no group"));
}

TEST_CASE("groups with cores of their own take as long as one group, and groups that share cores take longer") {
  const auto one = pair_of(1 << 16);
  const auto both = side_by_side(one, {{{0, 1}, {2, 3}}});
  const prediction::Prices prices = test::sample_prices();
  for (const bool maps : {true, false}) {
    const auto seconds = [&](const std::vector<Schedule>& ranks, int cores) {
      const Site site = Site::one_host(static_cast<int>(ranks.size()), cores);
      return maps ? prediction::mapped(ranks, 4, site, prices) : prediction::messages(ranks, 4, site, prices, prices);
    };
    CHECK(seconds(both, 4) == seconds(one, 4));
    CHECK(seconds(both, 2) > 1.5 * seconds(one, 2));
  }
}

TEST_CASE("several groups are predicted by calibrated prices together, and not at all by typical prices") {
  Machine machine{.signature = machine_signature(), .cores = 2};
  machine.levels = {{.backend = "shm", .ranks = 2}};
  set_prices(machine.levels[0], test::sample_prices());
  const Selector selector({}, machine), typical;
  const Problem pair = Problem::even(Collective::all_reduce, 1 << 16, 2, 0, true);
  const SideBySide all{{{0, 1}, {2, 3}}};
  const auto seconds = [&](const Selector& by, const SideBySide& groups) {
    return by.predict("shm", "ring", 1, pair, DType::f32, groups);
  };
  CHECK(seconds(selector, {}) > 0);
  CHECK(seconds(selector, all) > 1.5 * seconds(selector, {}));
  CHECK(seconds(typical, {}) > 0);
  CHECK(seconds(typical, all) < 0);
  const prediction::WorkBeside beside{10, 1e-6};
  CHECK(selector.predict("shm", "ring", 1, pair, DType::f32, {}, beside) > seconds(selector, {}));
  CHECK(typical.predict("shm", "ring", 1, pair, DType::f32, {}, beside) < 0);
}
