#include "experiments/train/ds_config.hpp"

#include <algorithm>
#include <fstream>

#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using Words = std::vector<std::string>;

namespace {

// The options of training with a file of DeepSpeed's.
struct Fields {
  explicit Fields(const std::string& json, Words arguments = {}, const Words& variables = {}) {
    const std::string file = (folder.path() / "ds.json").string();
    std::ofstream(file) << json;
    flags.declare(options);
    layout.declare(options);
    options.add("log-interval", log_interval, "steps");
    options.add("config", "a file");
    arguments.insert(arguments.end(), {"--ds-config", file});
    resolve(options, arguments, variables, {}, train::presets(), {{"ds-config", train::read_ds_config}});
  }
  TrainingOptions training(std::int64_t replicas = 1) const { return flags.training(1, {.data = replicas}); }

  test::TemporaryFolder folder;
  std::int64_t log_interval = 10;
  Options options{"chorale test"};
  train::Flags flags;
  train::LayoutFlags layout;
};

std::string refused(const std::string& json, std::int64_t replicas = 1) {
  return test::refused([&] { Fields(json).training(replicas); });
}

}  // namespace

TEST_CASE("a file of DeepSpeed's becomes settings of ours, each with its key") {
  const Fields f(R"({
    "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5, "steps_per_print": 50, "wall_clock_breakdown": true,
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e6, "overlap_comm": false, "contiguous_gradients": true,
                          "offload_optimizer": {"device": "none"}},
    "optimizer": {"type": "Adam", "params": {"lr": 2e-4, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.01}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 500, "warmup_num_steps": 20, "cos_min_ratio": 0.1}},
    "fp16": {"enabled": true, "initial_scale_power": 12, "loss_scale_window": 77, "hysteresis": 3, "min_loss_scale": 1},
    "bf16": {"enabled": false}, "tensorboard": {"enabled": false},
    "activation_checkpointing": {"partition_activations": true}
  })");
  TrainingOptions o = f.training(4);
  f.layout.complete(o);
  CHECK((o.global_batch == 64 && o.micro_batch == 4 && o.clip == 0.5 && f.log_interval == 50));
  CHECK((o.optimizer == "adamw" && o.beta1 == 0.8 && o.beta2 == 0.99 && o.epsilon == 1e-7 && o.decay == 0.01));
  CHECK((o.rate.decay == "cosine" && o.rate.peak == 2e-4 && o.rate.steps == 500 && o.rate.warmup == 20));
  CHECK(o.rate.minimum == Approx(2e-5));
  CHECK((o.compute == DType::f16 && o.scaler.scale == 4096 && o.scaler.growth_interval == 77 && o.scaler.hysteresis == 3));
  CHECK((o.bucket_bytes == TrainingOptions{}.bucket_bytes && o.reducer == "bucketed"));  // of no meaning in stage 2
  CHECK(to_string(f.layout.layout(4)) == "dp4.z2");
  CHECK(o.partition_activations);
  CHECK_THAT(f.options.origin("zero"), Catch::Matchers::EndsWith("ds.json: zero_optimization.stage"));
  CHECK_THAT(f.options.toml(), !says("ds.json"));  // what it said is folded into the rest
}

TEST_CASE("hints for the reduction of gradients are taken where they mean something") {
  TrainingOptions o;
  Fields(R"({"zero_optimization": {"stage": 0, "reduce_bucket_size": 5e6, "overlap_comm": false}})").layout.complete(o);
  CHECK((o.bucket_bytes == 20'000'000 && o.reducer == "naive"));
}

TEST_CASE("schedulers of DeepSpeed's are styles of ours, and their rate wins over the optimizer's") {
  const TrainingOptions constant = Fields(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.02,
      "warmup_num_steps": 7, "warmup_min_lr": 0}}, "optimizer": {"type": "SGD", "params": {"lr": 1, "momentum": 0.8}}})")
                                       .training();
  CHECK((constant.rate.decay == "constant" && constant.rate.peak == 0.02 && constant.rate.warmup == 7));
  CHECK((constant.optimizer == "sgd" && constant.momentum == 0.8));
  const TrainingOptions linear =
      Fields(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 90}}})").training();
  CHECK((linear.rate.decay == "linear" && linear.rate.steps == 90 && linear.rate.minimum == 0));
}

TEST_CASE("environment, command line and config file win over DeepSpeed's file, which wins over a preset") {
  const char* json = R"({"gradient_clipping": 3, "train_batch_size": 6})";
  CHECK(Fields(json, {"--preset", "nano"}).training().global_batch == 6);
  CHECK(Fields(json, {"--clip-grad", "4"}).training().clip == 4);
  CHECK(Fields(json, {}, {"CHORALE_CLIP_GRAD=5"}).training().clip == 5);
  const test::TemporaryFolder folder;
  const std::string config = (folder.path() / "a.toml").string();
  std::ofstream(config) << "clip-grad = 7\n";
  CHECK(Fields(json, {"--config", config}).training().clip == 7);
}

TEST_CASE("auto leaves a setting as it is") {
  const Fields f(R"({"train_batch_size": "auto", "gradient_clipping": "auto", "optimizer": {"params": {"betas": "auto"}},
                     "scheduler": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": "auto"}})");
  CHECK((f.training().global_batch == 8 && f.training().clip == 1 && f.training().compute == DType::f32));
  CHECK(f.options.origin("clip-grad") == "default");
}

TEST_CASE("sizes of DeepSpeed's batches must agree, and what is left out follows") {
  const auto sizes = [](const std::string& json, std::int64_t replicas) {
    const TrainingOptions o = Fields(json).training(replicas);
    return std::pair(o.global_batch, o.micro_batch);
  };
  const char *micro = R"("train_micro_batch_size_per_gpu": 2)", *steps = R"("gradient_accumulation_steps": 3)";
  CHECK(sizes(fmt::format("{{{}, {}}}", micro, steps), 4) == std::pair<std::int64_t, std::int64_t>{24, 2});
  CHECK(sizes(fmt::format("{{{}}}", micro), 4) == std::pair<std::int64_t, std::int64_t>{8, 2});
  CHECK(sizes(fmt::format("{{\"train_batch_size\": 24, {}}}", steps), 4) == std::pair<std::int64_t, std::int64_t>{24, 2});
  CHECK_THAT(refused(fmt::format("{{\"train_batch_size\": 20, {}, {}}}", micro, steps), 4),
             says("global-batch-size 20 is not micro-batch-size 2 × gradient-accumulation-steps 3 × replicas 4") &&
                 says("try --global-batch-size 24"));
  CHECK_THAT(refused(fmt::format("{{\"train_batch_size\": 20, {}}}", steps), 4), says("no multiple of"));
}

TEST_CASE("what DeepSpeed knows and we do not is refused, and what nobody knows named") {
  CHECK_THAT(refused(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})"),
             says("DeepSpeed's zero_optimization.offload_optimizer is not supported") && says("ds.json: zero_optimization"));
  CHECK_THAT(refused(R"({"optimizer": {"type": "Lamb"}})"), says("optimizer.type = \"Lamb\"") && says("Adam, AdamW or SGD"));
  CHECK_THAT(refused(R"({"scheduler": {"type": "OneCycle"}})"), says("WarmupLR, WarmupDecayLR or WarmupCosineLR"));
  CHECK_THAT(refused(R"({"scheduler": {"params": {"warmup_type": "log"}}})"), says("only linear"));
  CHECK_THAT(refused(R"({"scheduler": {"params": {"cos_min_ratio": 0.1}}})"),
             says("optimizer.params.lr, which is not said"));
  CHECK_THAT(refused(R"({"fp16": {"loss_scale": 128}})"), says("only 0"));
  CHECK_THAT(refused(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"), says("one type"));
  CHECK_THAT(refused(R"({"bf16": true})"), says("DeepSpeed's bf16 is not supported like this"));
  CHECK_THAT(refused(R"({"flops_profiler": {"enabled": true}})"), says("only off"));
  CHECK_THAT(refused(R"({"zero_optimization": {"stge": 1}})"), says("did you mean \"zero_optimization.stage\"?"));
  CHECK_THAT(refused(R"({"optimiser": {}})"), says("did you mean \"optimizer\"?"));
  CHECK_THAT(refused(R"({"zero_optimization": {"stage": 4}})"),
             says("zero takes one of") && says("ds.json: zero_optimization.stage"));
  CHECK_THAT(refused(R"({"train_batch_size": "many"})"), says("a whole number") && says("ds.json: train_batch_size"));
  CHECK_THAT(refused("{\n\"a\": }"), says("not valid JSON") && says("ds.json:2"));
  CHECK_THAT(refused("[]"), says("not one object"));
}
