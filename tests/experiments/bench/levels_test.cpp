#include "experiments/bench/calibration.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/prediction/prediction.hpp"
#include "src/base/host.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::bench;
using prediction::Prices;
using prediction::Site;

namespace {

const auto go_on = [] { return true; };

Prices typical(double nearness = 1) {
  Prices p{.call = 2e-7, .step = 1e-7, .message = 3e-7, .latency = 3e-7 / nearness, .handshake = 1e-6};
  p.touch.fill(1 / 70e9);
  p.cross.fill(1 / (20e9 * nearness));
  p.cross_sum = 1 / 20e9;
  p.sum = 1 / 60e9;
  p.copy = 1 / (12e9 * nearness);
  p.eager = 1 / 10e9;
  return p;
}

// Returns the series that `bench` would measure on a backend whose calls take the times that the function `seconds` returns.
std::vector<Series> series_of(const std::string& backend, const Site& site, double barrier, std::size_t most,
                              const std::function<double(const std::vector<Schedule>&)>& seconds) {
  std::vector<Series> all;
  for (std::int64_t count = 256; count <= 1 << 20; count *= 8)
    for (const char* name : {"ring", "one_shot", "direct"}) {
      const int ranks = static_cast<int>(site.host_of.size());
      Series one{.row = {.backend = backend, .algorithm = name, .ranks = ranks, .count = count}};
      const double time = seconds(plan_all_ranks(*find_algorithm(one.row.what, name), one.row.problem()));
      one.slowest.assign(20, time);
      one.barrier = barrier;
      if (all.size() < most) all.push_back(one);
    }
  return all;
}

}  // namespace

TEST_CASE("calls before which the cores had another distance do not count") {
  const Site site = Site::one_host(2, 2);
  for (const bool usually_near : {false, true}) {
    const auto measured = [&](double nearness, double barrier, std::size_t most) {
      return series_of("shm", site, barrier, most,
                       [&](const auto& ranks) { return prediction::mapped(ranks, 4, site, typical(nearness)); });
    };
    std::vector<Series> all = measured(1, 0.65e-6, usually_near ? 9 : 15);
    for (const Series& near : measured(4, 0.2e-6, usually_near ? 15 : 9)) all.push_back(near);
    const std::vector<Level> levels = levels_of(all, site, {}, go_on);
    REQUIRE(levels.size() == 1);
    CHECK((levels[0].rows == 15 && levels[0].barrier == (usually_near ? 0.2e-6 : 0.65e-6)));
    CHECK(levels[0].error_95 < 0.05);
  }
}

TEST_CASE("of few calls all count, because none of their distances can be called usual") {
  const Site site = Site::one_host(2, 2);
  const auto measured = [&](double barrier, std::size_t most) {
    return series_of("shm", site, barrier, most,
                     [&](const auto& ranks) { return prediction::mapped(ranks, 4, site, typical(1)); });
  };
  std::vector<Series> all = measured(0.65e-6, 5);
  for (const Series& near : measured(0.2e-6, 4)) all.push_back(near);
  const std::vector<Level> levels = levels_of(all, site, {}, go_on);
  REQUIRE(levels.size() == 1);
  CHECK(levels[0].rows == 9);
  CHECK(levels[0].barrier == Level{}.barrier);
}

TEST_CASE("with several hosts, the prices within a host are those of an earlier run on one host") {
  Site site = Site::one_host(4, 4);
  site.host_of = {0, 0, 1, 1};
  site.machine_of = site.host_of;
  Prices within = typical(), between = typical();
  between.latency = 5e-5;
  between.link = 1 / 115e6;
  Machine machine{.signature = machine_signature(), .cores = 4};
  machine.levels = {{.backend = "shm", .ranks = 2}, {.backend = "shm+ucx", .ranks = 2}};
  set_prices(machine.levels[0], typical(2));
  set_prices(machine.levels[1], within);
  within.eager_bytes = 448;  // with shm+ucx, shorter messages are sent inside their ring entries
  const std::vector<Series> all = series_of(
      "shm+ucx", site, 1e-3, 99, [&](const auto& ranks) { return prediction::messages(ranks, 4, site, within, between); });
  std::vector<Level> levels = levels_of(all, site, machine, go_on);
  REQUIRE(levels.size() == 2);
  CHECK(levels[0].prices.at("latency")[0] == Approx(within.latency));
  CHECK(levels[0].prices.at("eager_bytes")[0] == 448);
  CHECK(levels[1].prices.at("link")[0] == Approx(115e6).epsilon(0.05));
  machine.levels.pop_back();  // without costs of shm+ucx, the costs of shm are used
  levels = levels_of(all, site, machine, go_on);
  CHECK(levels[0].prices.at("latency")[0] == Approx(within.latency / 2));
  machine.signature = "another machine";
  levels = levels_of(all, site, machine, go_on);
  CHECK(levels[0].prices.at("latency")[0] != Approx(within.latency / 2));
}
