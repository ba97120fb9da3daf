// Tests the presets of `chorale train`. Covers the model shapes that presets set, and values that change if a preset is
// combined with other options.
#include "experiments/train/flags.hpp"

#include "src/base/settings.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

ModelShape shape_of(const std::vector<std::string>& arguments) {
  Options options{"chorale test"};
  train::Flags flags;
  flags.declare(options);
  resolve(options, arguments, {}, {}, train::presets());
  return flags.on({}).shape;
}

}  // namespace

TEST_CASE("a preset has the shape of its row in the table") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.name);
    CHECK(shape_of({"--preset", preset.name}) == preset.shape);
  }
}

TEST_CASE("an option given with a preset changes the values that follow from the option") {
  CHECK(shape_of({"--preset", "nano", "--num-attention-heads", "12"}).groups == 12);
  CHECK(shape_of({"--preset", "nano", "--hidden-size", "768"}).ffn == 3072);
  CHECK(shape_of({"--preset", "nano", "--hidden-size", "768", "--num-experts", "4"}).experts.ffn == 3072);
  CHECK(shape_of({"--preset", "nano-moe", "--num-experts", "16", "--moe-router-topk", "4"}).experts.chosen == 4);
  // The preset nano-llama sets the number of groups explicitly.
  CHECK(shape_of({"--preset", "nano-llama", "--num-attention-heads", "12"}).groups == 2);
}

TEST_CASE("what the options leave open follows from the layout, the machine and other options") {
  const auto on = [](const std::vector<std::string>& arguments, const char* layout, const train::Here& here) {
    Options options{"chorale test"};
    train::Flags flags;
    flags.declare(options);
    flags.declare_offload(options);
    resolve(options, arguments, {}, {}, train::presets());
    return flags.on(parse_layout(layout, 0), here);
  };
  const train::Here here{.threads = 3, .memory_limit = 1 << 30};
  TrainingOptions o = on({}, "dp4", here);
  CHECK((o.batch.global == 8 && o.batch.micro == 2 && o.kernels.threads == 3 && o.memory.limit == 1 << 30));
  CHECK((o.optimizer.rate.steps == 100 && o.optimizer.rate.warmup == 10 && o.optimizer.rate.minimum == 1e-4));
  CHECK((!o.scaler.dynamic && o.scaler.scale == 1 && !o.replicas.prefetch_units && !o.batch.packed));
  CHECK(on({}, "dp2.pp2", here).batch.micro == 1);
  CHECK(on({"--global-batch-size", "0", "--micro-batch-size", "3"}, "dp2", here).batch.global == 6);
  CHECK(on({"--threads", "2"}, "dp1", here).kernels.threads == 2);
  o = on({"--dtype", "f16", "--hysteresis", "5", "--lr-warmup-fraction", "0.5", "--min-lr", "0.1*lr", "--lr", "0.2"}, "dp1",
         here);
  CHECK((o.scaler.dynamic && o.scaler.scale == 32768 && o.scaler.patience == 5));
  CHECK((o.optimizer.rate.warmup == 50 && o.optimizer.rate.minimum.value == Approx(0.02)));
  CHECK_FALSE(on({"--place", "optimizer=cpu"}, "dp1", here).offload.any());
  o = on({"--place", "optimizer=cpu"}, "dp1", {.on_accelerator = true});
  CHECK((o.offload.optimizer && o.offload.to_host));
}
