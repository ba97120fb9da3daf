#include "experiments/train/ds_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "src/base/text.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using Words = std::vector<std::string>;

namespace {

// The options of `chorale train`, set from a DeepSpeed configuration file.
struct Fields {
  explicit Fields(const std::string& json, Words arguments = {}, const Words& variables = {}) {
    const std::string file = (folder.path() / "ds.json").string();
    std::ofstream(file) << json;
    flags.declare(options);
    layout.declare(options);
    flags.declare_parallel(options, layout);
    flags.declare_offload(options);
    options.add("log-interval", log_interval, "steps");
    options.add("config", "a file");
    arguments.insert(arguments.end(), {"--ds-config", file});
    resolve(options, arguments, variables, {}, train::presets(), {{"ds-config", train::read_ds_config}});
  }
  TrainingOptions training(std::int64_t replicas = 1) const {
    return flags.on(parse_layout(fmt::format("dp{}", replicas), 0));
  }

  std::string notes() const { return join(options.notes(), "\n"); }

  test::TemporaryFolder folder;
  std::int64_t log_interval = 10;
  Options options{"chorale test"};
  train::Flags flags;
  train::LayoutFlags layout;
};

std::string refused_config(const std::string& json, std::int64_t replicas = 1) {
  return test::refused([&] { Fields(json).training(replicas); });
}

}  // namespace

TEST_CASE("a DeepSpeed file sets our options, and each names its key as the origin") {
  const Fields f(R"({
    "train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5, "steps_per_print": 50, "wall_clock_breakdown": true,
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e6, "overlap_comm": false, "contiguous_gradients": true,
                          "offload_optimizer": {"device": "none"}},
    "optimizer": {"type": "Adam", "params": {"lr": 2e-4, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.01}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 500, "warmup_num_steps": 20, "cos_min_ratio": 0.1,
                                                       "warmup_min_ratio": 0.25, "warmup_type": "linear"}},
    "fp16": {"enabled": true, "initial_scale_power": 12, "loss_scale_window": 77, "hysteresis": 3, "min_loss_scale": 1},
    "bf16": {"enabled": false}, "tensorboard": {"enabled": false},
    "activation_checkpointing": {"partition_activations": true}
  })",
                 {"--recompute", "full", "--tp", "2"});
  const TrainingOptions o = f.training(4);
  CHECK((o.batch.global == 64 && o.batch.micro == 4 && o.optimizer.clip == 0.5 && f.log_interval == 50));
  CHECK((o.optimizer.kind == OptimizerKind::adamw && o.optimizer.beta1 == 0.8 && o.optimizer.beta2 == 0.99 &&
         o.optimizer.epsilon == 1e-7 && o.optimizer.decay == 0.01));
  CHECK((o.optimizer.rate.decay == RateDecay::warmup_cosine_lr && o.optimizer.rate.peak == 2e-4 &&
         o.optimizer.rate.steps == 500 && o.optimizer.rate.warmup == 20));
  CHECK((f.flags.steps() == 500 && o.optimizer.rate.warmup_style == WarmupStyle::linear));
  CHECK((o.optimizer.rate.minimum.value == Approx(2e-5) && o.optimizer.rate.first.value == Approx(5e-5)));
  CHECK((o.compute == DType::f16 && o.scaler.scale == 4096 && o.scaler.growth_interval == 77 && o.scaler.hysteresis == 3));
  // reduce_bucket_size and overlap_comm have no effect in stage 2.
  CHECK((!o.replicas.bucket_bytes && o.replicas.reducer == ReducerKind::bucketed));
  CHECK(to_string(f.layout.layout(8)) == "dp4.tp2.z2");
  CHECK(o.memory.partition_activations);
  CHECK_THAT(f.options.origin("zero"), Catch::Matchers::EndsWith("ds.json: zero_optimization.stage"));
  CHECK_THAT(f.options.toml(), !says("ds.json"));  // values are saved as Chorale's own options
}

TEST_CASE("MiCS and hpZ have groups of as many ranks as the DeepSpeed file says") {
  const auto layout = [](const char* size, const char* key = "mics_shard_size") {
    return to_string(
        Fields(fmt::format(R"({{"zero_optimization": {{"stage": 3, "{}": {}}}}})", key, size)).layout.layout(8));
  };
  CHECK(layout("4", "zero_hpz_partition_size") == "dp4.rep2.z3.hpz");
  CHECK(layout("1", "zero_hpz_partition_size") == "dp8.z3");
  CHECK(layout("4") == "dp4.rep2.z3");
  CHECK(layout("-1") == "dp8.z3");
  CHECK_THAT(test::refused([&] { layout("0"); }), says("mics_shard_size = 0") && says("-1 or a number of ranks"));
  CHECK_THAT(test::refused([&] { layout("5"); }), says("shard-size 5, 8 copies of the model"));
}

TEST_CASE("keys missing in a DeepSpeed file have DeepSpeed's defaults") {
  const Fields f(R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}, "fp16": {"enabled": true}})",
                 {"--preset", "nano"});
  const TrainingOptions o = f.training();
  CHECK((o.optimizer.clip == 0 && o.optimizer.rate.peak == 1e-3 && o.optimizer.beta1 == 0.9 && o.optimizer.beta2 == 0.999 &&
         o.optimizer.epsilon == 1e-8 && o.optimizer.decay == 0));
  CHECK((o.scaler.scale == 65536 && o.scaler.growth_interval == 1000 && o.scaler.hysteresis == 2));
  CHECK((o.optimizer.rate.decay == RateDecay::constant && o.optimizer.rate.at(0) == 1e-3 &&
         o.optimizer.rate.at(10'000) == 1e-3));
  CHECK_THAT(f.options.origin("clip-grad"), Catch::Matchers::EndsWith("ds.json: DeepSpeed's default of gradient_clipping"));
  CHECK_THAT(f.options.origin("lr-decay-style"), says("DeepSpeed's default of scheduler.type"));
  CHECK_THAT(f.notes(),
             says("gradient_clipping is missing: gradients are not clipped") && says("optimizer.params.betas.1 0.999"));

  const TrainingOptions single = Fields(R"({"optimizer": {"type": "AdamW"}})", {}, {}).training();
  CHECK(single.compute == DType::f32);
  CHECK(Fields(R"({"bfloat16": {"enabled": true}})").training().compute == DType::bf16);  // the older name of the key "bf16"
  const auto decay = [](const std::string& params) {
    return Fields(fmt::format(R"({{"optimizer": {{"type": "{}", "params": {{{}}}}}}})", params[0] == '!' ? "Adam" : "AdamW",
                              params.substr(params[0] == '!')))
        .training()
        .optimizer.decay;
  };
  CHECK(decay(R"("torch_adam": true)") == 0.01);
  CHECK(decay(R"(!"torch_adam": true)") == 0.01);
  CHECK(decay(R"(!"torch_adam": true, "adam_w_mode": false)") == 0);
  CHECK(Fields(R"({"optimizer": {"type": "SGD", "params": {"lr": 0.5}}})").training().optimizer.momentum == 0);
}

TEST_CASE("without an optimizer in the DeepSpeed file our own options apply") {
  const Fields f(R"({"train_batch_size": 8})");
  CHECK((f.training().optimizer.beta2 == 0.95 && f.training().optimizer.decay == 0.1 &&
         f.training().optimizer.rate.decay == RateDecay::constant));
  CHECK_THAT(f.notes(), says("chorale's optimizer options apply"));
}

TEST_CASE("the schedulers have DeepSpeed's formulas and defaults; a scheduler's rate overrides the optimizer's") {
  const auto rate = [](const std::string& scheduler, const Words& arguments = {}) {
    return Fields(
               fmt::format(R"({{"optimizer": {{"type": "AdamW", "params": {{"lr": 0.02}}}}, "scheduler": {}}})", scheduler),
               arguments)
        .training()
        .optimizer.rate;
  };
  const LearningRate plain = rate(R"({"type": "WarmupLR", "params": {}})");
  CHECK((plain.decay == RateDecay::warmup_lr && plain.warmup == 1000 && plain.warmup_style == WarmupStyle::log &&
         plain.peak == 0.02));
  CHECK((plain.first == 0 && plain.at(0) == 0 && plain.at(1) == 0));
  CHECK(plain.at(32) == Approx(0.02 * std::log(32) / std::log(1000)));
  const LearningRate said = rate(R"({"type": "WarmupLR", "params": {"warmup_min_lr": 0.1, "warmup_max_lr": 0.5,
      "warmup_num_steps": 7, "warmup_type": "linear"}})");
  CHECK((said.peak == 0.5 && said.first == 0.1 && said.warmup == 7 && said.at(8) == 0.5));
  const LearningRate falling =
      rate(R"({"type": "WarmupDecayLR", "params": {"total_num_steps": 90, "warmup_num_steps": 10}})");
  // The peak learning rate is the scheduler's default, not the optimizer's rate.
  CHECK((falling.peak == 0.001 && falling.steps == 90 && falling.at(91) == 0));
  const LearningRate cosine = rate(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 90}})", {"--lr", "3"});
  CHECK((cosine.peak == 3 && cosine.minimum.value == Approx(3e-4)));  // cos_min_ratio is a fraction of --lr
  CHECK(rate(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": 90}})", {"--train-iters", "10"}).steps == 90);
  CHECK(rate(R"({"type": "WarmupCosineLR", "params": {"total_num_steps": "auto"}})", {"--train-iters", "30"}).steps == 30);
}

TEST_CASE("keys without effect are noted with the reason") {
  const std::string notes = Fields(R"({"train_batch_size": 8, "wall_clock_breakdown": false, "steps_per_print": 5,
                 "zero_optimization": {"stage": 1, "reduce_scatter": false, "overlap_comm": false,
                                       "reduce_bucket_size": 5e6},
                 "activation_checkpointing": {"partition_activations": true},
                 "scheduler": {"params": {"warmup_num_steps": 4}}, "optimizer": {"params": {"lr": 1}}})")
                                .notes();
  for (const char* line : {"wall_clock_breakdown = false has no effect: every run records it",
                           "zero_optimization.reduce_scatter = false has no effect: --algorithm",
                           "zero_optimization.overlap_comm) has no effect: the ZeRO stage is 1",
                           "activation_checkpointing.partition_activations) has no effect: recompute = none",
                           "scheduler.params.warmup_num_steps = 4 has no effect: there is no scheduler.type",
                           "optimizer.params.lr = 1 has no effect: there is no optimizer.type"})
    CHECK_THAT(notes, says(line));
  for (const char* line : {"steps_per_print", "reduce_bucket_size", "fp16"}) CHECK_THAT(notes, !says(line));
}

TEST_CASE("keys for the reduction of gradients apply where they have an effect") {
  TrainingOptions o = Fields(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 5e6}})").training();
  CHECK(o.replicas.bucket_bytes == 20'000'000);
  o = Fields(R"({"zero_optimization": {"stage": 0, "overlap_comm": false}})").training();
  CHECK(o.replicas.reducer == ReducerKind::naive);
}

TEST_CASE("environment, command line and config file override the DeepSpeed file; DeepSpeed's defaults override a preset") {
  const char* json = R"({"gradient_clipping": 3, "train_batch_size": 6, "zero_optimization": {"stage": 2}})";
  CHECK(Fields(json, {"--preset", "nano"}).training().batch.global == 6);
  CHECK(Fields(json, {"--clip-grad", "4"}).training().optimizer.clip == 4);
  CHECK(Fields(json, {}, {"CHORALE_CLIP_GRAD=5"}).training().optimizer.clip == 5);
  const test::TemporaryFolder folder;
  const std::string config = (folder.path() / "a.toml").string();
  std::ofstream(config) << "clip-grad = 7\n";
  CHECK(Fields(json, {"--config", config}).training().optimizer.clip == 7);
  CHECK(Fields("{}", {"--config", config}).training().optimizer.clip == 7);
  CHECK(to_string(Fields(json).layout.layout(4)) == "dp4.z2");
  CHECK(to_string(Fields(json, {"--layout", "tp2"}).layout.layout(4)) == "dp2.tp2.z2");
  CHECK(to_string(Fields(json, {"--layout", "dp4.z1"}).layout.layout(4)) ==
        "dp4.z1");  // the command line overrides the file
}

TEST_CASE("auto leaves a setting unchanged") {
  const Fields f(R"({"train_batch_size": "auto", "gradient_clipping": "auto",
                     "optimizer": {"type": "AdamW", "params": {"betas": "auto", "lr": "auto"}},
                     "scheduler": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": "auto"}})");
  const TrainingOptions o = f.training();
  CHECK((o.batch.global == 8 && o.optimizer.clip == 1 && o.compute == DType::f32 && o.optimizer.beta2 == 0.95 &&
         o.optimizer.rate.decay == RateDecay::cosine));
  CHECK(o.optimizer.decay == 0);  // because the file has no weight_decay
  for (const char* option : {"clip-grad", "lr-decay-style", "adam-beta1", "dtype"})
    CHECK(f.options.origin(option) == "default");
}

TEST_CASE("DeepSpeed's batch sizes must agree, and missing ones follow from the others") {
  const auto sizes = [](const std::string& json, std::int64_t replicas) {
    const TrainingOptions o = Fields(json).training(replicas);
    return std::pair(o.batch.global, o.batch.micro);
  };
  const char *micro = R"("train_micro_batch_size_per_gpu": 2)", *steps = R"("gradient_accumulation_steps": 3)";
  CHECK(sizes(fmt::format("{{{}, {}}}", micro, steps), 4) == std::pair<std::int64_t, std::int64_t>{24, 2});
  CHECK(sizes(fmt::format("{{{}}}", micro), 4) == std::pair<std::int64_t, std::int64_t>{8, 2});
  CHECK(sizes(fmt::format("{{\"train_batch_size\": 24, {}}}", steps), 4) == std::pair<std::int64_t, std::int64_t>{24, 2});
  CHECK(sizes(R"({"train_batch_size": 24})", 4) == std::pair<std::int64_t, std::int64_t>{24, 6});
  CHECK(sizes(fmt::format("{{\"train_batch_size\": 24, {}}}", micro), 4) == std::pair<std::int64_t, std::int64_t>{24, 2});
  CHECK_THAT(Fields(R"({"gradient_clipping": 1})").notes(), says("chorale's batch options apply"));
  CHECK_THAT(refused_config(fmt::format("{{\"train_batch_size\": 20, {}, {}}}", micro, steps), 4),
             says("global-batch-size 20 is not micro-batch-size 2 × gradient-accumulation-steps 3 × replicas 4") &&
                 says("try --global-batch-size 24"));
  CHECK_THAT(refused_config(fmt::format("{{\"train_batch_size\": 20, {}}}", steps), 4), says("not a multiple of"));
}

TEST_CASE("DeepSpeed's types of gradients set the type in which ranks sum them") {
  const auto sums = [](const char* keys) {
    const TrainingOptions o = Fields(fmt::format("{{{}}}", keys)).training();
    return o.replicas.gradient_sums ? name_of(*o.replicas.gradient_sums) : "as they add up";
  };
  CHECK(sums("") == std::string("as they add up"));
  CHECK(sums(R"("communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "fp32"})") ==
        std::string("as they add up"));
  CHECK(sums(R"("communication_data_type": "bf16")") == std::string("bf16"));
  CHECK(sums(R"("data_types": {"grad_accum_dtype": "bfloat16"})") == std::string("bf16"));
  CHECK(sums(R"("communication_data_type": "bf16", "data_types": {"grad_accum_dtype": "fp32"},
                "zero_optimization": {"stage": 1})") == std::string("bf16"));
  CHECK_THAT(refused_config(R"({"communication_data_type": "bf16", "data_types": {"grad_accum_dtype": "fp32"},
                         "zero_optimization": {"stage": 2}})"),
             says("grad_accum_dtype = \"fp32\"") && says("bf16 with communication_data_type bf16"));
  CHECK_THAT(refused_config(R"({"communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "bf16"}})"),
             says("fp32 with communication_data_type fp32"));
  CHECK_THAT(refused_config(R"({"communication_data_type": "fp16"})"), says("fp32 or bf16"));
}

TEST_CASE("DeepSpeed's keys of offload say what lives in a file") {
  const auto places = [](const char* keys, bool on_device = false) {
    const Fields f(fmt::format(R"({{"zero_optimization": {{"stage": 3, {}}}}})", keys));
    const TrainingOptions o = f.flags.on({}, {.on_accelerator = on_device});
    return std::tuple(o.offload.parameters, o.offload.gradients, o.offload.optimizer, o.offload.folder);
  };
  const auto both = R"("offload_param": {"device": "nvme", "nvme_path": "/scratch"},
                       "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch", "buffer_count": 4})";
  CHECK(places(both) == std::tuple(true, false, true, std::string("/scratch")));
  CHECK(places(R"("offload_optimizer": {"device": "nvme"})") == std::tuple(false, false, true, std::string(".")));
  const auto with_folder = [](const char* folder) {
    return fmt::format(
        R"({{"zero_optimization": {{"stage": 3, "offload_param": {{"device": "nvme", "nvme_path": "/scratch"}},
                           "offload_optimizer": {{"device": "nvme", "nvme_path": "{}"}}}}}})",
        folder);
  };
  CHECK(refused_config(with_folder("/scratch")) == "accepted");
  CHECK_THAT(refused_config(with_folder("/other")),
             says("one folder for offloaded tensors") && says("offload_param.nvme_path = /scratch, but") &&
                 says("offload_optimizer.nvme_path = /other") && says("give both keys the same path"));
  CHECK(places(R"("offload_optimizer": {"device": "cpu"})") == std::tuple(false, false, false, std::string(".")));
  CHECK(places(R"("offload_optimizer": {"device": "cpu"})", true) == std::tuple(false, false, true, std::string(".")));
}

TEST_CASE("unsupported DeepSpeed values are refused, and unknown keys are named") {
  CHECK_THAT(refused_config(R"({"zero_optimization": {"offload_optimizer": {"device": "tape"}}})"),
             says("DeepSpeed's zero_optimization.offload_optimizer.device is not supported") &&
                 says("ds.json: zero_optimization") && says("none, cpu or nvme"));
  CHECK_THAT(refused_config(R"({"optimizer": {"type": "Lamb"}})"),
             says("optimizer.type = \"Lamb\"") && says("Adam, AdamW or SGD"));
  CHECK_THAT(
      refused_config(R"({"scheduler": {"params": {"cycle_min_lr": 1}, "type": "OneCycle"}})"),
      says("WarmupLR, WarmupDecayLR or WarmupCosineLR") && says("OneCycle is not supported: it also changes the betas"));
  CHECK_THAT(refused_config(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})"),
             says("log or linear"));
  CHECK_THAT(refused_config(R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 9}}})"),
             says("in schedulers of the type WarmupDecayLR WarmupCosineLR"));
  CHECK_THAT(refused_config(R"({"scheduler": {"type": "WarmupDecayLR", "params": {}}})"), says("WarmupDecayLR requires it"));
  CHECK_THAT(refused_config(R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})"),
             says("in optimizers of the type SGD"));
  CHECK_THAT(refused_config(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false, "weight_decay": 0.1}}})"),
             says("a weight_decay of 0"));
  CHECK_THAT(refused_config(R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}})"),
             says("gradient_clipping"));
  CHECK(refused_config(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})") == "accepted");
  CHECK(refused_config(R"({"optimizer": {"type": "AdamW", "params": {"adam_w_mode": false, "weight_decay": 0.1}}})") ==
        "accepted");
  CHECK_THAT(refused_config(R"({"fp16": {"loss_scale": 128}})"), says("only 0"));
  CHECK_THAT(refused_config(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"), says("one type"));
  CHECK_THAT(refused_config(R"({"bf16": true})"), says("DeepSpeed's bf16 is not supported with this value"));
  CHECK_THAT(refused_config(R"({"flops_profiler": {"enabled": true}})"), says("only off"));
  CHECK_THAT(refused_config(R"({"zero_optimization": {"stge": 1}})"), says("did you mean \"zero_optimization.stage\"?"));
  CHECK_THAT(refused_config(R"({"optimiser": {}})"), says("did you mean \"optimizer\"?"));
  CHECK_THAT(refused_config(R"({"zero_optimization": {"stage": 4}})"),
             says("zero takes one of") && says("ds.json: zero_optimization.stage"));
  CHECK_THAT(refused_config(R"({"train_batch_size": "many"})"), says("a whole number") && says("ds.json: train_batch_size"));
  CHECK_THAT(refused_config("{\n\"a\": }"), says("not valid JSON") && says("ds.json:2"));
  CHECK_THAT(refused_config("[]"), says("is not a JSON object"));
}

TEST_CASE("all mistakes in a DeepSpeed file are reported at once") {
  const std::string text = refused_config(R"({"train_batch_size": "many", "amp": {"enabled": true}, "optimiser": {},
      "optimizer": {"type": "Lamb", "params": {"lr": 1, "max_coeff": 3}},
      "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": [1]}},
      "fp16": {"enabled": true, "loss_scale": 128}, "bf16": {"enabled": true},
      "zero_optimization": {"stage": 3, "zenflow": {"a": 1}, "stge": 1}})");
  for (const char* line :
       {"amp = {\"enabled\":true}: remove it",
        "optimiser is not a DeepSpeed key that chorale knows: did you mean \"optimizer\"?",
        "optimizer.type = \"Lamb\": remove it; supported: Adam, AdamW or SGD",
        "fp16.loss_scale = 128: remove it; supported: only 0", "bf16.enabled = true: remove it; supported: one type",
        "zero_optimization.zenflow = {\"a\":1}: remove it", "zero_optimization.stge is not",
        "scheduler.params.total_num_steps = [1]: remove it", "global-batch-size = many (", "a whole number"})
    CHECK_THAT(text, says(line));
  for (const std::string& line : split(text, '\n')) CHECK(line.size() < 300);
  CHECK_THAT(refused_config(R"({"amp": {"enabled": true, "text": ")" + std::string(50'000, 'x') + R"("}})"), says("xxx…"));
}

TEST_CASE("the documentation has the code's table of DeepSpeed keys") {
  std::ifstream file("docs/other_programs.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& row : split(train::ds_table(), '\n')) CHECK_THAT(page, says(row));
  CHECK(std::count(page.begin(), page.end(), '\n') > 100);
}
