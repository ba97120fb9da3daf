// The keys of DeepSpeed's configuration, and what each comes to here: an option of ours, nothing (it steers DeepSpeed's own engine and no
// result), or a refusal unless it is off.
#include <fmt/format.h>

#include <cmath>

#include "experiments/train/ds_config.hpp"

namespace chorale::train {
namespace {

using Json = nlohmann::ordered_json;
using Text = std::optional<std::string>;

Text plain(const Json& v) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_number_float() && v == std::floor(v.get<double>()) && std::abs(v.get<double>()) < 0x1p53)  // 5e8 counts elements
    return fmt::format("{}", v.get<std::int64_t>());
  if (v.is_number() || v.is_boolean()) return v.dump();
  return {};
}

Text nothing(const Json&) { return ""; }

Text off(const Json& v) {
  const bool named = v.is_string() && (v == "none" || v == "");
  const bool switched = v.is_object() && (v.value("enabled", Json()) == false || v.value("device", Json()) == "none");
  const bool is_zero = v.is_number() && v == 0;
  return v.is_null() || v == false || is_zero || named || switched || (v.is_structured() && v.empty()) ? Text("") : Text();
}

Text on(const Json& v) { return v == true ? Text("") : Text(); }
Text one(const Json& v) { return v.is_number() && v == 1 ? Text("") : Text(); }

// Our gradients take 4 bytes, and DeepSpeed counts elements.
Text gradient_bytes(const Json& v) {
  if (!v.is_number() || v < 0) return {};
  return fmt::format("{:.0f}", 4 * v.get<double>());
}

Text power_of_two(const Json& v) {
  if (!v.is_number() || v < 0 || v > 40) return {};
  return fmt::format("{}", std::exp2(v.get<double>()));
}

Text if_true(const Json& v, const char* text) { return v.is_boolean() ? Text(v == true ? text : "") : Text(); }

Text reducer(const Json& v) { return v.is_boolean() ? Text(v == true ? "bucketed" : "naive") : Text(); }

// DeepSpeed's Adam decays weights as AdamW does, unless adam_w_mode is off.
Text optimizer(const Json& v) {
  if (v == "Adam" || v == "AdamW" || v == "adam" || v == "adamw") return "adamw";
  return v == "SGD" || v == "sgd" ? Text("sgd") : Text();
}

Text decay_style(const Json& v) {
  if (v == "WarmupLR") return "constant";
  if (v == "WarmupDecayLR") return "linear";
  return v == "WarmupCosineLR" ? Text("cosine") : Text();
}

constexpr const char *number = "a number", *only_on = "only true";

// Numbers that are an option of ours as they stand.
constexpr const char* numbers[][2] = {{"train_batch_size", "global-batch-size"},
                                      {"train_micro_batch_size_per_gpu", "micro-batch-size"},
                                      {"gradient_accumulation_steps", "gradient-accumulation-steps"},
                                      {"gradient_clipping", "clip-grad"},
                                      {"steps_per_print", "log-interval"},
                                      {"optimizer.params.lr", "lr"},
                                      {"optimizer.params.betas.0", "adam-beta1"},
                                      {"optimizer.params.betas.1", "adam-beta2"},
                                      {"optimizer.params.eps", "adam-eps"},
                                      {"optimizer.params.weight_decay", "weight-decay"},
                                      {"optimizer.params.momentum", "sgd-momentum"},
                                      {"scheduler.params.warmup_max_lr", "lr"},
                                      {"scheduler.params.warmup_num_steps", "lr-warmup-iters"},
                                      {"scheduler.params.total_num_steps", "train-iters"},
                                      {"fp16.loss_scale_window", "loss-scale-window"},
                                      {"fp16.hysteresis", "hysteresis"}};

// What steers DeepSpeed's own engine, and no result.
constexpr const char* without_effect[] = {"optimizer.params.torch_adam",
                                          "optimizer.legacy_fusion",
                                          "bf16.immediate_grad_update",
                                          "zero_optimization.allgather_partitions",
                                          "zero_optimization.allgather_bucket_size",
                                          "zero_optimization.reduce_scatter",
                                          "zero_optimization.contiguous_gradients",
                                          "zero_optimization.round_robin_gradients",
                                          "zero_optimization.ignore_unused_parameters",
                                          "zero_optimization.load_from_fp32_weights",
                                          "zero_optimization.sub_group_size",
                                          "zero_optimization.stage3_max_live_parameters",
                                          "zero_optimization.stage3_max_reuse_distance",
                                          "zero_optimization.stage3_prefetch_bucket_size",
                                          "zero_optimization.stage3_param_persistence_threshold",
                                          "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                                          "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                                          "zero_optimization.elastic_checkpoint",
                                          "zero_allow_untested_optimizer",
                                          "zero_force_ds_cpu_optimizer",
                                          "activation_checkpointing.contiguous_memory_optimization",
                                          "activation_checkpointing.synchronize_checkpoint_boundary",
                                          "activation_checkpointing.profile",
                                          "wall_clock_breakdown",
                                          "memory_breakdown",
                                          "dump_state"};

// What we do not do.
constexpr const char* refused_unless_off[] = {"optimizer.params.amsgrad",
                                              "optimizer.params.nesterov",
                                              "optimizer.params.dampening",
                                              "fp16.consecutive_hysteresis",
                                              "fp16.auto_cast",
                                              "amp",
                                              "zero_optimization.cpu_offload",
                                              "zero_optimization.cpu_offload_params",
                                              "zero_optimization.zero_quantized_weights",
                                              "zero_optimization.zero_quantized_gradients",
                                              "zero_optimization.mics_hierarchical_params_gather",
                                              "activation_checkpointing.cpu_checkpointing",
                                              "activation_checkpointing.number_checkpoints",
                                              "prescale_gradients",
                                              "sparse_gradients",
                                              "tensorboard",
                                              "wandb",
                                              "comet",
                                              "csv_monitor",
                                              "flops_profiler",
                                              "comms_logger",
                                              "sparse_attention",
                                              "data_efficiency",
                                              "curriculum_learning",
                                              "progressive_layer_drop",
                                              "eigenvalue",
                                              "elasticity",
                                              "autotuning",
                                              "compression_training",
                                              "quantize_training",
                                              "hybrid_engine",
                                              "pipeline",
                                              "tensor_parallel",
                                              "checkpoint",
                                              "data_types",
                                              "aio"};

}  // namespace

const std::vector<DsKey>& ds_keys() {
  static const std::vector<DsKey> table = [] {
    std::vector<DsKey> all{
        {"optimizer.type", "optimizer", optimizer, "Adam, AdamW or SGD"},
        {"optimizer.params.adam_w_mode", "", on, only_on},
        {"optimizer.params.bias_correction", "", on, only_on},

        {"scheduler.type", "lr-decay-style", decay_style, "WarmupLR, WarmupDecayLR or WarmupCosineLR"},
        {"scheduler.params.cos_min_ratio", "", [](const Json& v) { return v.is_number() ? Text("") : Text(); }, number},
        {"scheduler.params.warmup_min_lr", "", off, "only 0"},
        {"scheduler.params.warmup_min_ratio", "", off, "only 0"},
        {"scheduler.params.warmup_type", "", [](const Json& v) { return v == "linear" ? Text("") : Text(); }, "only linear"},

        {"bf16.enabled", "dtype", [](const Json& v) { return if_true(v, "bf16"); }, "true or false"},
        {"fp16.enabled", "dtype", [](const Json& v) { return if_true(v, "f16"); }, "true or false"},
        {"fp16.initial_scale_power", "initial-loss-scale", power_of_two, "0 to 40"},
        {"fp16.loss_scale", "", off, "only 0, which is dynamic"},
        {"fp16.min_loss_scale", "", one, "only 1"},

        {"zero_optimization.stage", "zero", plain, "0 to 3"},
        {"zero_optimization.reduce_bucket_size", "bucket-size", gradient_bytes, "a number of elements"},
        {"zero_optimization.overlap_comm", "reducer", reducer, "true or false"},
        {"zero_optimization.offload_param", "", off, "only the device none"},
        {"zero_optimization.offload_optimizer", "", off, "only the device none"},
        {"zero_optimization.zero_hpz_partition_size", "", one, "only 1"},
        {"zero_optimization.mics_shard_size", "", [](const Json& v) { return v == -1 ? Text("") : Text(); }, "only -1"},

        {"activation_checkpointing.partition_activations", "partition-activations", plain, "true or false"},

        {"gradient_predivide_factor", "", one, "only 1"},
        {"communication_data_type", "", [](const Json& v) { return v == "fp32" ? Text("") : off(v); }, "only fp32"},
    };
    for (const auto& [path, option] : numbers) all.push_back({path, option, plain, number});
    for (const char* path : without_effect) all.push_back({path, "", nothing, ""});
    for (const char* path : refused_unless_off) all.push_back({path, "", off, "only off"});
    return all;
  }();
  return table;
}

}  // namespace chorale::train
