// Tests training on devices with the backend nccl. The memory of the buckets must be registered with NCCL only once.
#include "collectives/backends/backends.hpp"
#include "src/memory/pool.hpp"
#include "tests/collectives/backends/registrations.hpp"
#include "tests/parallel/small_training.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

TEST_CASE("device: buckets of training are registered with NCCL in its first step, and not again", "[spmd][nccl]") {
  SystemClock clock;
  auto* const known_to = registrations();
  if (!known_to || !probe(backend_named("nccl")).works) return;
  const DevicePlugin plugin;
  TrainingOptions options = small();
  options.kernels.device = &plugin;
  options.batch.global = 8 * world().size();
  Worlds worlds({{"", "nccl"}}, world(), clock);
  worlds.use_device(cuda_memory(plugin, 0));
  Pool pool(worlds.memory());
  Layout layout;
  layout["dp"] = world().size();
  SmallRun data(small());
  Training training(options, Mesh(layout, worlds, {{"", "native"}}), pool, clock);
  training.step(data.read());
  const std::int64_t first = known_to(nullptr);
  REQUIRE_ALL((known_to(training.parameters()[0]->gradient.slice().data) > 0 || world().size() == 1));
  for (int i = 0; i < 2; ++i) training.step(data.read());
  REQUIRE_ALL(known_to(nullptr) == first);
}

}  // namespace chorale::test
