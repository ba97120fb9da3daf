// Tests a training step on a device. Covers the number of times that the host waits for the device, and the times of the
// step's phases.
#include "src/memory/pool.hpp"
#include "tests/math/cuda/gpu.hpp"
#include "tests/parallel/small_training.hpp"

using namespace chorale;

namespace {

// With `experts`, every MLP is an expert layer.
TrainingOptions on(const DevicePlugin& plugin, std::int64_t layers, std::int64_t micro_batch, const Experts& experts = {}) {
  TrainingOptions options = test::small();
  options.shape.layers = layers;
  options.shape.experts = experts;
  options.batch.micro = micro_batch;
  options.kernels.device = &plugin;
  return options;
}

// Returns the number of times that the host waits for the device in one step, after earlier steps have allocated all memory.
// Only the emulated device counts these waits.
std::int64_t waits_of_step(const DevicePlugin& plugin, const TrainingOptions& options) {
  const auto memory = cuda_memory(plugin, 0);
  Pool pool(*memory);
  test::SmallRun run(options, pool);
  auto* const waits = plugin.require<std::int64_t()>("chorale_emulated_waits");
  run.steps(2);
  const std::int64_t before = waits();
  run.steps(1);
  return waits() - before;
}

}  // namespace

TEST_CASE("device: the host waits once in a step, however many layers and micro-batches the step has", "[gpu]") {
  const DevicePlugin plugin;
  if (!test::has_emulated_device(plugin)) return;
  const auto waits = [&](std::int64_t layers, std::int64_t micro_batch) {
    return waits_of_step(plugin, on(plugin, layers, micro_batch));
  };
  CHECK(waits(1, 8) == 1);
  CHECK(waits(4, 8) == 1);
  CHECK(waits(2, 2) == 1);
}

TEST_CASE("device: the host also waits for every routing, and once to move biases", "[gpu]") {
  const DevicePlugin plugin;
  if (!test::has_emulated_device(plugin)) return;
  Experts experts{.count = 4, .chosen = 2, .ffn = 24, .balance = 0.01};
  const auto waits = [&] { return waits_of_step(plugin, on(plugin, 2, 4, experts)); };  // a step has four routings
  CHECK(waits() == 1 + 4);
  experts.balancing = BalanceOver::step;
  CHECK(waits() == 1 + 4);
  experts.score = ScoreFunction::sigmoid;
  experts.bias = true;
  CHECK(waits() == 1 + 4 + 1);
}

TEST_CASE("device: the phases of a step are spans of the device's time, and fit into the step", "[gpu]") {
  const Gpu gpu;
  if (!gpu) return;
  const DevicePlugin plugin;
  const auto memory = cuda_memory(plugin, 0);
  test::SmallRun run(on(plugin, 2, 4), *memory);
  const Trace& trace = run.training.account().trace();
  run.training.account().trace().record(1, 3, 10000);
  const double begun = run.clock.seconds();
  const std::vector<StepResult> steps = run.steps(3);
  const double seconds = run.clock.seconds() - begun;
  double all = 0;
  for (const StepResult& step : steps) {
    CHECK((step.data > 0 && step.forward > 0 && step.backward > 0 && step.optimizer > 0));
    CHECK((step.exposed == 0 && step.bubble == 0));
    all += step.data + step.forward + step.backward + step.optimizer;
  }
  CHECK(all <= seconds * 1.01);
  double last = begun;
  for (const PipelineEvent& event : run.training.account().events()) {
    CHECK((event.begins >= last && event.ends > event.begins && event.ends <= begun + seconds * 1.01));
    last = event.ends;
  }
  int updates = 0;
  for (const Trace::Span& span : trace.spans()) updates += span.kind == Trace::Kind::optimizer;
  CHECK(updates == 2);
  std::map<std::string, int> layers;
  int kernels = 0;
  for (const Trace::Inner& inner : trace.inner()) {
    CHECK((inner.begins >= begun && inner.ends >= inner.begins && inner.ends <= begun + seconds * 1.01));
    inner.kernel ? ++kernels : ++layers[inner.name];
  }
  CHECK((layers["block.0"] == 3 * 2 * 2 && layers["block.1.attention.qkv"] == 3 * 2 * 2));  // steps × micro-batches × passes
  CHECK(kernels > 10 * layers["block.0"]);
}
