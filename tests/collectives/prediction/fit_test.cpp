#include "collectives/prediction/fit.hpp"

#include <cmath>

#include <chorale/algorithm.hpp>
#include "tests/catch.hpp"
#include "tests/collectives/prediction/sample_prices.hpp"
#include "tests/sample.hpp"

using namespace chorale;
using namespace chorale::prediction;

namespace {

// Returns calls of all algorithms at several sizes, without times. Only every n-th of these calls is returned.
std::vector<Timed> calls(const Site& site, int n = 5) {
  std::vector<Timed> rows;
  test::Sample sample(n);
  for (const Algorithm& algorithm : all_algorithms())
    for (const bool in_place : {false, true})
      for (std::int64_t count = 256; count <= 4 << 20 && algorithm.what != Collective::barrier; count *= 16) {
        const Problem problem = Problem::even(algorithm.what, count, static_cast<int>(site.host_of.size()), 0, in_place);
        if (fits(algorithm, problem) && sample.takes()) rows.push_back({plan_all_ranks(algorithm, problem)});
      }
  return rows;
}

// Reports a sign of life, because a fit can take long on a slow machine. Always lets the fit continue.
bool go_on() {
  test::alive();
  return true;
}

}  // namespace

TEST_CASE("on mapped memory, a fit recovers the prices that made the times") {
  const Site site = Site::one_host(2, 2);
  const Prices truth = test::sample_prices();
  std::vector<Timed> rows = calls(site);
  for (Timed& row : rows) row.seconds = mapped(row.ranks, 4, site, truth);
  const auto fitted = fit(rows, 4, true, site, go_on);
  REQUIRE(fitted);
  CHECK((fitted->error < 0.02 && fitted->error_95 < 0.1));
  CHECK(fitted->within.step / truth.step == Approx(1).epsilon(0.2));
  CHECK(fitted->within.touch[2] / truth.touch[2] == Approx(1).epsilon(0.2));
  CHECK(fitted->within.cross[2] / truth.cross[2] == Approx(1).epsilon(0.3));
  CHECK((fitted->within.message == 0 && fitted->within.turn == 0));  // these prices apply only to messages
  CHECK((fitted->spread.at("touch").size() == footprints.size() && fitted->spread.at("touch")[2] < 0.1));
}

TEST_CASE("of messages, a fit also finds where the handshake begins, and the price of a link between hosts") {
  for (const int hosts : {1, 2}) {
    if (hosts == 1 && !test::thorough()) continue;  // one fit takes half a minute
    Site site = Site::one_host(4, 2);
    if (hosts == 2) site.host_of = {0, 0, 1, 1};
    Prices truth = test::sample_prices(), between = test::sample_prices();
    between.latency = 5e-5;
    between.link = 1 / 115e6;
    between.message = 8e-6;
    std::vector<Timed> rows = calls(site, 3);
    for (Timed& row : rows) row.seconds = messages(row.ranks, 4, site, truth, hosts == 2 ? between : truth);
    const auto fitted = fit(rows, 4, false, site, go_on);
    REQUIRE(fitted);
    INFO(hosts << " hosts: " << fitted->error << " " << fitted->error_95);
    CHECK((fitted->error < 0.05 && fitted->error_95 < 0.25));
    CHECK(fitted->within.eager_bytes == 12288);
    if (hosts == 2) CHECK(fitted->between.link / between.link == Approx(1).epsilon(0.1));
    if (hosts == 1) CHECK(fitted->within.turn / truth.turn == Approx(1).epsilon(0.5));
  }
}

TEST_CASE("a fit finds the burst of a link, and none where the link is a wire") {
  Site site = Site::one_host(4, 4);
  site.host_of = {0, 0, 1, 1};
  for (const double burst : {0.0, 1e5}) {
    Prices within = test::sample_prices(), between = test::sample_prices();
    within.eager_bytes = 448;
    between.latency = 5e-5;
    between.link = 1 / 115e6;
    between.message = 8e-6;
    between.burst = burst;
    std::vector<Timed> rows = calls(site);
    for (Timed& row : rows) row.seconds = messages(row.ranks, 4, site, within, between);
    const auto fitted = fit(rows, 4, false, site, go_on, {.within = within});
    REQUIRE(fitted);
    CHECK(fitted->between.burst == Approx(burst).epsilon(0.1));
    CHECK(fitted->between.link / between.link == Approx(1).epsilon(0.05));
  }
}

TEST_CASE("with several hosts, prices within a host that are known stay as they are") {
  Site site = Site::one_host(4, 4);
  site.host_of = {0, 0, 1, 1};
  Prices within = test::sample_prices(), between = test::sample_prices();
  within.eager_bytes = 448;
  between.latency = 5e-5;
  between.link = 1 / 115e6;
  between.message = 8e-6;
  std::vector<Timed> rows = calls(site);
  for (Timed& row : rows) row.seconds = messages(row.ranks, 4, site, within, between);
  const auto fitted = fit(rows, 4, false, site, go_on, {.within = within});
  REQUIRE(fitted);
  CHECK((fitted->error < 0.02 && fitted->error_95 < 0.1));
  CHECK((fitted->within.latency == within.latency && fitted->within.eager_bytes == 448));
  CHECK((fitted->between.touch == within.touch && fitted->between.call == within.call));
  CHECK(fitted->between.link / between.link == Approx(1).epsilon(0.05));
  CHECK(fitted->between.latency / between.latency == Approx(1).epsilon(0.05));
  CHECK(fitted->spread.empty());
  const Site crowded{.host_of = {0, 0, 1, 1}, .machine_of = {0, 0, 0, 0}, .cores = 2};
  Prices lacks_some = within;
  lacks_some.copy = 0;  // like the costs of shm, which include no cost of a copy
  const auto begun = fit(rows, 4, false, crowded, go_on, {.within = lacks_some});
  REQUIRE(begun);
  CHECK((begun->within.latency != within.latency && begun->within.copy > 0 && begun->within.eager_bytes == 448));
  CHECK((std::isfinite(begun->error) && begun->error < 0.3));
}

TEST_CASE("a fit that is told to stop returns nothing") {
  const Site site = Site::one_host(2, 2);
  std::vector<Timed> rows = calls(site);
  for (Timed& row : rows) row.seconds = 1e-6;
  CHECK(!fit(rows, 4, true, site, [] { return false; }));
}

TEST_CASE("prices depend on the footprint, evenly on a logarithmic scale") {
  Curve curve{1, 2, 2, 2, 8};
  CHECK((at(curve, 0) == 1 && at(curve, 1 << 14) == 1 && at(curve, 1e12) == 8));
  CHECK(at(curve, 64 << 10) == Approx(std::sqrt(2.0)));
  CHECK(at(curve, 1 << 20) == Approx(2));
}

TEST_CASE("a level in a machine file and its prices are two forms of one thing") {
  Level level;
  set_prices(level, test::sample_prices());
  const Prices back = prices_of(level);
  CHECK((back.call == 2e-7 && back.touch == test::sample_prices().touch && back.eager_bytes == 12288));
  CHECK(level.prices.at("sum")[0] == Approx(60e9));
  CHECK(!level.prices.contains("link"));  // a cost of 0 is left out of the machine file
}

TEST_CASE("the level of the most similar run prices a call, and a call between hosts needs one between hosts") {
  Machine machine{.signature = "any", .cores = 2};
  for (const int ranks : {2, 4, 16}) {
    machine.levels.push_back({.backend = "ucx", .ranks = ranks});
    set_prices(machine.levels.back(), test::sample_prices());
  }
  CHECK(nearest(machine, "ucx", "host", 3, 1)->ranks == 4);
  CHECK(nearest(machine, "ucx", "host", 64, 1)->ranks == 16);
  CHECK((!nearest(machine, "shm", "host", 2, 1) && !nearest(machine, "ucx", "network", 4, 2)));
  const auto ranks =
      plan_all_ranks(*find_algorithm(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, 1 << 20, 4));
  const auto one_host = predict(machine, "ucx", false, ranks, 4, {});
  REQUIRE(one_host);
  CHECK(!predict(machine, "ucx", false, ranks, 4, {0, 0, 1, 1}));
  Level network{.backend = "ucx", .span = "network", .ranks = 4, .hosts = 2};
  Prices slow = test::sample_prices();
  slow.link = 1 / 100e6;
  set_prices(network, slow);
  machine.levels.push_back(network);
  const auto two_hosts = predict(machine, "ucx", false, ranks, 4, {0, 0, 1, 1});
  REQUIRE(two_hosts);
  CHECK(*two_hosts > 6.0 / 4 * (4 << 20) / 100e6);                       // the ring sends 6/4 of the vector over each link
  CHECK(*predict(machine, "ucx", false, ranks, 4, {}, 10) > *one_host);  // reductions are ten times as slow
}
