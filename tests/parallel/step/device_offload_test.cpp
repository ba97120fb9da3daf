// Tests offload from a GPU to the host (ZeRO-Offload). In exact numerics, results must be bit-identical to a run without
// offload. The copied bytes must equal the closed form and the plan. GPU memory must not hold offloaded tensors.
#include "parallel/plan/plan.hpp"
#include "parallel/step/offload.hpp"
#include "src/memory/pool.hpp"
#include "tests/math/cuda/gpu.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

struct DevicePlaces {
  bool parameters, gradients, optimizer;
};

struct DeviceRun {
  std::unique_ptr<Memory> memory;
  test::Run run;

  DeviceRun(const DevicePlugin& plugin, TrainingOptions options, const Layout& layout)
      : memory(cuda_memory(plugin, 0)), run((options.kernels.device = &plugin, options), Mesh(layout), *memory) {}
};

TrainingOptions options_on(const Layout& layout, const char* numerics, DType compute) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.compute = compute;
  options.batch.micro = 4;
  return options;
}

OffloadOptions to_host(const DevicePlaces& places) {
  return {places.parameters, places.gradients, places.optimizer, ".", 4096, true};
}

TEST_CASE("device: offload to the host changes no bit in exact numerics", "[gpu]") {
  const Gpu gpu;
  if (!gpu) return;
  const DevicePlugin plugin;
  std::map<std::string, test::Seen> plain;  // the key is the layout
  test::Sample fifth(5);
  for (const auto& [word, places] : {std::pair{"dp1", DevicePlaces{false, false, true}},
                                     {"dp1.z2", DevicePlaces{false, true, true}},
                                     {"dp1.z3", DevicePlaces{true, true, true}},
                                     {"dp1.z3", DevicePlaces{true, false, false}},
                                     {"dp1.z3", DevicePlaces{false, true, false}}}) {
    const Layout layout = parse_layout(word, 1);
    TrainingOptions options = options_on(layout, "exact", DType::f32);
    options.shape.layers = 2;
    INFO(word);
    for (const UpdateTime update : {UpdateTime::after, UpdateTime::speculative}) {
      if (!fifth.takes()) continue;
      if (!plain.contains(word)) {
        options.offload = {};
        options.update = UpdateTime::after;
        DeviceRun device(plugin, options, layout);
        device.run.steps(3).seen.held_out = device.run.training.evaluate(device.run.read, 7);
        plain[word] = std::move(device.run.seen);
      }
      options.offload = to_host(places);
      options.update = update;
      DeviceRun offloaded(plugin, options, layout);
      offloaded.run.steps(3).seen.held_out = offloaded.run.training.evaluate(offloaded.run.read, 7);
      CHECK(test::difference(plain[word], offloaded.run.seen) == "");
    }
  }
}

// A shard has n elements, including padding. Of these, t elements belong to the tied table. A step of three micro-batches
// copies these bytes:
//
//                              up, to the GPU                              down, to the host
//   16-bit values on the GPU   2n: the updated values                      –
//   f32 values on the GPU      4n                                          4n: the values are the weights
//   values on the host         2·3·e·(n + t): both passes                  –: the host updates the values
//   gradients on the host      2·4n: earlier sums, for micro-batch 2, 3    3·4n
//   gradients on the GPU       –                                           4n: for the update
TEST_CASE("device: the bytes between GPU and host are those of the formula and of the plan", "[gpu]") {
  const Gpu gpu;
  if (!gpu) return;
  const DevicePlugin plugin;
  const Layout layout = parse_layout("dp1.z3", 1);
  test::Sample third(3);
  for (const DType compute : {DType::f32, DType::bf16})
    for (const bool parameters : {false, true})
      for (const bool gradients : {false, true}) {
        if (!third.takes()) continue;
        TrainingOptions options = options_on(layout, "fast", compute);
        options.offload = to_host({parameters, gradients, true});
        INFO(name_of(compute) << ", " << parameters << gradients);
        DeviceRun device(plugin, options, layout);
        Training& training = device.run.training;
        device.run.steps(1);
        training.clear_tier_traffic();
        training.step(device.run.read);
        TierTraffic made = training.tier_passes();
        made.add(training.tier_updates(), 1);
        std::int64_t n = 0;
        for (const Bucket& bucket : training.buckets().all()) n += bucket.value_shard.count();
        const std::int64_t e = size_of(compute), t = options.shape.vocabulary * options.shape.width;
        const bool is_weight = compute == DType::f32;
        const auto of = [](const auto& bytes, Category c) { return bytes[static_cast<std::size_t>(c)]; };
        CHECK(of(made.read, Category::params) == (parameters ? 6 * e * (n + t) : e * n));
        CHECK(of(made.written, Category::params) == (parameters || !is_weight ? 0 : e * n));
        CHECK(of(made.read, Category::grads) == (gradients ? 2 * 4 * n : 0));
        CHECK(of(made.written, Category::grads) == (gradients ? 3 * 4 * n : 4 * n));
        CHECK((of(made.read, Category::optimizer) == 0 && of(made.written, Category::optimizer) == 0));
        const RankPlan plan = plan_rank({.options = options, .layout = layout}, 0);
        CHECK((plan.tier_passes == training.tier_passes() && plan.tier_updates == training.tier_updates()));
        const Ledger &here = training.memory().ledger(), &host = training.memory().tier_ledger();
        CHECK((here.current(Category::optimizer) == 0 && host.current(Category::optimizer) > 0));
        for (std::size_t c = 0; c < categories; ++c) {
          INFO(category_names[c]);
          CHECK(host.peak(static_cast<Category>(c)) == plan.offloaded[c]);
          if (static_cast<Category>(c) != Category::workspace) CHECK(here.peak(static_cast<Category>(c)) == plan.peak[c]);
        }
      }
}

}  // namespace
}  // namespace chorale
