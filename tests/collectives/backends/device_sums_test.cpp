#include "collectives/backends/message/device_sums.hpp"

#include "tests/collectives/schedule/planning.hpp"
#include "tests/device.hpp"

using namespace chorale;

TEST_CASE("device: only algorithms that add all ranks' data at once have a maximum number of ranks", "[gpu]") {
  const DevicePlugin plugin;
  if (!test::has_device(plugin)) return;
  const auto device = direct_device(true, cuda_memory(plugin, 0));
  REQUIRE(device);
  const auto prepare = [&](const char* algorithm, int ranks) {
    const Plan plan{.algorithm = &test::named(Collective::all_reduce, algorithm),
                    .problem = test::even(Collective::all_reduce, 1000, ranks)};
    const MessagePlan flat(plan);
    const DeviceSums sums(*device, plan, flat);
  };
  prepare("ring", 1000);
  prepare("direct", static_cast<int>(most_addends));
  CHECK_THROWS(prepare("direct", static_cast<int>(most_addends) + 1));
}
