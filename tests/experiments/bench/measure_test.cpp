// Tests how many calls a benchmark makes if the machine becomes busy. In these tests, time passes only in barriers.
#include "experiments/bench/measure.hpp"

#include "collectives/backends/threads.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

// A BenchTeam with a single rank. From the tenth barrier on, each barrier takes 40 ms.
struct BusyTeam final : bench::BenchTeam {
  explicit BusyTeam(Clock& clock) : clock(clock) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override { clock.sleep(++barriers < 10 ? 1e-6 : 0.04); }
  std::vector<double> gather(const std::vector<double>& mine) override { return mine; }
  double broadcast(double value) override { return value; }
  Clock& clock;
  int barriers = 0;
};

struct Measured {
  explicit Measured(const bench::How& how) : bench(team, communicator, how) {}
  bench::Series row() { return bench.measure({.backend = "threads", .count = 2}); }
  VirtualClock clock;
  ThreadWorld world{1};
  Communicator communicator = open_world(world.transport(0), clock);
  BusyTeam team{clock};
  bench::Bench bench;
};

}  // namespace

TEST_CASE("a row takes about half a second, even if its warm-up was faster than its other calls") {
  Measured busy({.ceiling = false});
  const bench::Series series = busy.row();
  CHECK((series.slowest.size() >= 20 && series.slowest.size() <= 40));  // on a quiet machine, there would be 2000 calls
  CHECK(series.wrong == 0);
  CHECK(Measured({.repetitions = 100, .ceiling = false}).row().slowest.size() == 100);  // the number set by the user
}

TEST_CASE("a row ends within a tenth of a second if it is told to stop") {
  const Clock* clock = nullptr;
  Measured busy({.repetitions = 1000, .ceiling = false, .told_to_stop = [&] { return clock->seconds() > 3; }});
  clock = &busy.clock;
  busy.row();
  CHECK(busy.bench.stopped());
  CHECK((clock->seconds() > 3 && clock->seconds() < 3.2));
}
