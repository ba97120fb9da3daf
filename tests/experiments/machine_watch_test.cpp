#include "experiments/common/machine_watch.hpp"

#include "tests/catch.hpp"

using namespace chorale;

namespace {

RankReading rank_on(const std::string& kernel, const std::string& host, MachineReading before, MachineReading after) {
  return {kernel, host, 4, before, after};
}

}  // namespace

TEST_CASE("other work excludes all our ranks on a machine, even if the machine has two host names") {
  // In 10 s of wall time, programs on machine a used 35 s of CPU time: the run's two ranks used 12 s and 13 s, and other
  // programs used 10 s. On machine b, only the run's rank used CPU time, 9 s.
  const std::vector<OtherWork> work = other_work({
      rank_on("a", "host-1", {.at = 5, .worked = 100, .own = 1, .load = 2}, {.at = 15, .worked = 135, .own = 13}),
      rank_on("b", "host-3", {.at = 900, .worked = 7, .stolen = 1}, {.at = 910, .worked = 16, .stolen = 3, .own = 9}),
      rank_on("a", "host-2", {.at = 5.5, .worked = 101, .own = 3}, {.at = 15.5, .worked = 136, .own = 16}),
  });
  REQUIRE(work.size() == 3);
  CHECK(work[0].cores == Approx(1.0));
  CHECK((work[2].cores == work[0].cores && work[2].load == 2));
  CHECK((work[0].busy() && !OtherWork{work[1].cores, 0, 0, 4}.busy()));
  CHECK(work[1].cores == 0);
  CHECK(work[1].stolen == Approx(0.05));
  CHECK(other_work({}).empty());
}
