// The keys of DeepSpeed's configuration (releases 0.14 to 0.19) and their defaults. There are three kinds of key. Keys of
// the first kind set one of chorale's options. Keys of the second kind are refused unless they have the only supported
// value, such as "off". Keys of the third kind have no effect here, and a remark says why.
#include <fmt/format.h>

#include <cmath>

#include "experiments/train/ds_config.hpp"
#include "parallel/layout/axes.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

using Json = nlohmann::ordered_json;
using Text = std::optional<std::string>;

Text plain(const Json& v) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_number_float() && v == std::floor(v.get<double>()) && std::abs(v.get<double>()) < 0x1p53)  // such as 5e8
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
Text minus_one(const Json& v) { return v.is_number() && v == -1 ? Text("") : Text(); }
Text shard_size(const Json& v) { return v.is_number_integer() && v > 0 ? Text(v.dump()) : minus_one(v); }
Text hpz(const Json& v) { return v.is_number_integer() && v > 1 ? Text(v.dump()) : one(v); }
Text single(const Json& v) { return v.is_null() || v == "fp32" ? Text("") : Text(); }
Text gradient_type(const Json& v) { return v == "bf16" || v == "bfloat16" ? Text("bf16") : single(v); }
Text mean(const Json& v) { return v == "mean" ? Text("") : Text(); }

// DeepSpeed gives the size of a bucket in elements, but chorale gives the size in bytes. A gradient element has 4 bytes. In
// exact numerics and in f64, a gradient element has 8 bytes, so the bucket then has half as many elements as in DeepSpeed.
Text gradient_bytes(const Json& v) {
  if (!v.is_number() || v < 0) return {};
  return fmt::format("{:.0f}", 4 * v.get<double>());
}

Text power_of_two(const Json& v) {
  if (!v.is_number() || v < 0 || v > 40) return {};
  return fmt::format("{}", std::exp2(v.get<double>()));
}

// A rate relative to the highest learning rate: "0.1*lr". (A different source can set the highest learning rate.)
Text share_of_rate(const Json& v) {
  if (!v.is_number()) return {};
  return fmt::format("{}*lr", v.get<double>());
}

Text if_true(const Json& v, const char* text) { return v.is_boolean() ? Text(v == true ? text : "") : Text(); }
Text bf16(const Json& v) { return if_true(v, "bf16"); }
Text f16(const Json& v) { return if_true(v, "f16"); }

Text place(const char* what, const Json& v) {
  if (v == "nvme") return fmt::format("{}=file", what);
  return v == "cpu" || v == "none" ? Text(fmt::format("{}={}", what, v == "cpu" ? "cpu" : "memory")) : Text();
}
Text place_of_parameters(const Json& v) { return place("parameters", v); }
Text place_of_optimizer(const Json& v) { return place("optimizer", v); }

Text reducer(const Json& v) { return v.is_boolean() ? Text(v == true ? "bucketed" : "naive") : Text(); }

// DeepSpeed ignores the case of optimizer names. By default, both Adam and AdamW of DeepSpeed apply weight decay directly to
// the weights instead of adding it to the gradient.
Text optimizer(const Json& v) {
  const std::string name = v.is_string() ? lower(v.get<std::string>()) : "";
  return name == "adam" || name == "adamw" ? Text("adamw") : name == "sgd" ? Text("sgd") : Text();
}

Text scheduler(const Json& v) {
  return v == "WarmupLR" || v == "WarmupDecayLR" || v == "WarmupCosineLR" ? plain(v) : Text();
}

Text rise(const Json& v) { return v == "log" || v == "linear" ? plain(v) : Text(); }

constexpr const char *number = "a number", *flag = "true or false", *unless = "off", *adam = "Adam AdamW",
                     *falling = "WarmupDecayLR WarmupCosineLR", *fixed = "WarmupLR WarmupDecayLR",
                     *cosine = "WarmupCosineLR";

// Keys that set one of chorale's options.
constexpr DsKey setting[] = {
    {"train_batch_size", "", "null", false, "global-batch-size", plain, number,
     "DeepSpeed requires this or the next key; if both are missing, chorale's default applies"},
    {"train_micro_batch_size_per_gpu", "", "null", false, "micro-batch-size", plain, number,
     "if missing: follows from the other sizes"},
    {"gradient_accumulation_steps", "", "null", false, "gradient-accumulation-steps", plain, number,
     "if missing: follows from the other sizes, else 1"},
    {"gradient_clipping", "", "0.0", true, "clip-grad", plain, number,
     "if missing: no clipping, as in DeepSpeed up to 0.19.2; later releases clip at 1"},
    {"steps_per_print", "", "null", false, "log-interval", plain, number, ""},

    {"optimizer.type", "", "null", false, "optimizer", optimizer, "Adam, AdamW or SGD",
     "if missing: DeepSpeed uses the program's optimizer, so chorale's options apply"},
    {"optimizer.params.lr", "Adam AdamW SGD", "0.001", true, "lr", plain, number,
     "the scheduler's warmup_max_lr overrides it"},
    {"optimizer.params.betas.0", adam, "0.9", true, "adam-beta1", plain, number, ""},
    {"optimizer.params.betas.1", adam, "0.999", true, "adam-beta2", plain, number, ""},
    {"optimizer.params.eps", adam, "1e-08", true, "adam-eps", plain, number, ""},
    {"optimizer.params.weight_decay", "Adam AdamW SGD", "0.0", true, "weight-decay", plain, number,
     "if missing and torch_adam is true: 0.01; biases and norms do not decay here"},
    {"optimizer.params.momentum", "SGD", "0.0", true, "sgd-momentum", plain, number, ""},

    {"scheduler.type", "", "null", false, "lr-decay-style", scheduler, "WarmupLR, WarmupDecayLR or WarmupCosineLR",
     "if missing: a constant rate without warm-up; OneCycle is not supported: it also changes the betas"},
    {"scheduler.params.warmup_min_lr", fixed, "0.0", true, "lr-warmup-init", plain, number, ""},
    {"scheduler.params.warmup_max_lr", "WarmupLR", "null", false, "lr", plain, number,
     "if missing: the optimizer's rate; 0.001 in DeepSpeed up to 0.17.0"},
    {"scheduler.params.warmup_max_lr", "WarmupDecayLR", "0.001", true, "lr", plain, number, ""},
    {"scheduler.params.warmup_num_steps", "", "1000", true, "lr-warmup-iters", plain, number, "at least 2"},
    {"scheduler.params.warmup_type", "", "\"log\"", true, "lr-warmup-style", rise, "log or linear", ""},
    {"scheduler.params.total_num_steps", falling, "null", false, "lr-decay-iters", plain, number,
     "required; also sets train-iters, unless that is given"},
    {"scheduler.params.warmup_min_ratio", cosine, "0.0", true, "lr-warmup-init", share_of_rate, number, ""},
    {"scheduler.params.cos_min_ratio", cosine, "0.0001", true, "min-lr", share_of_rate, number, ""},

    {"bf16.enabled", "", "false", false, "dtype", bf16, flag, "f32 if neither this nor fp16 is enabled"},
    {"bfloat16.enabled", "", "false", false, "dtype", bf16, flag, "the older name"},
    {"fp16.enabled", "", "false", false, "dtype", f16, flag, ""},
    {"fp16.initial_scale_power", "", "16", true, "initial-loss-scale", power_of_two, "0 to 40", ""},
    {"fp16.loss_scale_window", "", "1000", true, "loss-scale-window", plain, number,
     "DeepSpeed doubles the scale one good step later"},
    {"fp16.hysteresis", "", "2", true, "hysteresis", plain, number, ""},

    {"communication_data_type", "", "null", false, "grad-dtype", gradient_type, "fp32 or bf16",
     "if missing: f32, in DeepSpeed the type of the parameters"},
    {"data_types.grad_accum_dtype", "", "null", false, "grad-dtype", gradient_type, "fp32 or bf16",
     "fp32 needs communication_data_type fp32 with stages 2 and 3, bf16 needs bf16: shards have the type that travels"},

    {"zero_optimization.stage", "", "0", false, "zero", plain, "0 to 3", "if missing: as in the layout"},
    {"zero_optimization.reduce_bucket_size", "", "500000000", false, "bucket-size", gradient_bytes, "a number of elements",
     "if missing: chorale's default, because results do not depend on it; no effect with stages 2 and 3"},
    {"zero_optimization.overlap_comm", "", "false", false, "reducer", reducer, flag,
     "if missing: chorale's default, because results do not depend on it; no effect with stages 1 to 3"},
    {"zero_optimization.mics_shard_size", "", "-1", false, "shard-size", shard_size, "-1 or a number of ranks",
     "-1: as in the layout; DeepSpeed has it with stage 3 only"},
    {"zero_optimization.zero_hpz_partition_size", "", "1", false, "hpz", hpz, "a number of ranks",
     "1: as in the layout; only with stage 3"},
    {"zero_optimization.offload_param.device", "", "\"none\"", false, "place", place_of_parameters, "none, cpu or nvme",
     "cpu is the host for a GPU, and memory without one"},
    {"zero_optimization.offload_param.nvme_path", "", "null", false, "offload-folder", plain, "a folder", ""},
    {"zero_optimization.offload_optimizer.device", "", "\"none\"", false, "place", place_of_optimizer, "none, cpu or nvme",
     "cpu is the host for a GPU, and memory without one"},
    {"zero_optimization.offload_optimizer.nvme_path", "", "null", false, "offload-folder", plain, "a folder", ""},
    {"activation_checkpointing.contiguous_memory_optimization", "", "false", false, "contiguous-memory", plain, flag,
     "gradients are in this memory too; no number_checkpoints is needed"},
    {"activation_checkpointing.partition_activations", "", "false", false, "partition-activations", plain, flag,
     "no effect without --recompute full and tensor ranks"},
};

// Keys for which chorale supports only one value.
constexpr DsKey only[] = {
    {"optimizer.params.bias_correction", adam, "true", false, "", on, "true", ""},
    {"scheduler.params.last_batch_iteration", "", "-1", false, "", minus_one, "-1", "--load resumes a run"},
    {"fp16.loss_scale", "", "0", false, "", off, "0", "the loss scale is dynamic"},
    {"fp16.min_loss_scale", "", "1", false, "", one, "1", ""},
    {"sequence_parallel_size", "", "1", false, "", one, "1", "--sequence-parallel shards activations"},
    {"gradient_predivide_factor", "", "1.0", false, "", one, "1", ""},
    {"gradient_allreduce_op", "", "\"mean\"", false, "", mean, "mean", ""},
    {"seq_parallel_communication_data_type", "", "\"fp32\"", false, "", single, "fp32",
     "context ranks sum gradients in the type of communication_data_type"},
};

// Keys of features that chorale lacks, and what to use instead. Such a key is refused unless it turns its feature off.
constexpr const char* refused_unless_off[][2] = {
    {"optimizer.params.amsgrad", ""},
    {"optimizer.params.nesterov", ""},
    {"optimizer.params.dampening", ""},
    {"optimizer.params.maximize", ""},
    {"optimizer.params.max_grad_norm", "DeepSpeed refuses it too: use gradient_clipping"},
    {"fp16.consecutive_hysteresis", ""},
    {"fp16.auto_cast", ""},
    {"fp16.fp16_master_weights_and_grads", ""},
    {"bf16.bf16_master_weights_and_grads", "--no-master-weights rounds stochastically"},
    {"bf16.bf16_optimizer_states", ""},
    {"torch_autocast", "use bf16 or fp16"},
    {"amp", "use bf16 or fp16"},
    {"zero_optimization.offload_param.max_in_cpu", "a rank holds only the units that compute, and the next ones"},
    {"zero_optimization.offload_optimizer.ratio", "all states are offloaded, or none"},
    {"zero_optimization.offload_optimizer.super_offload", ""},
    {"zero_optimization.cpu_offload", "use offload_optimizer"},
    {"zero_optimization.cpu_offload_params", "use offload_param"},
    {"zero_optimization.cpu_offload_param", "use offload_param"},
    {"zero_optimization.zenflow", ""},
    {"zero_optimization.zero_quantized_weights", ""},
    {"zero_optimization.zero_quantized_nontrainable_weights", ""},
    {"zero_optimization.zero_quantized_gradients", ""},
    {"zero_optimization.zeropp_loco_param", ""},
    {"zero_optimization.mics_hierarchical_params_gather", ""},
    {"activation_checkpointing.cpu_checkpointing",
     "block inputs stay where blocks compute; --place activations=file keeps them in a file"},
    {"prescale_gradients", ""},
    {"sparse_gradients", ""},
    {"disable_allgather", ""},
    {"tensorboard", "chorale watch and report show the record"},
    {"wandb", "chorale watch and report show the record"},
    {"comet", "chorale watch and report show the record"},
    {"csv_monitor", "use chorale report --format csv"},
    {"flops_profiler", "use chorale plan; every record has the MFU"},
    {"comms_logger", "chorale report shows the traffic"},
    {"sparse_attention", ""},
    {"data_efficiency", ""},
    {"curriculum_learning", ""},
    {"progressive_layer_drop", ""},
    {"eigenvalue", ""},
    {"elasticity", "set the batch sizes directly"},
    {"autotuning", "use chorale tune or chorale compare"},
    {"compression_training", ""},
    {"quantize_training", ""},
    {"weight_quantization", ""},
    {"hybrid_engine", ""},
    {"compile", ""},
    {"pipeline", "use --pp and --schedule"},
    {"graph_harvesting", ""},
    {"checkpoint", "use --save-interval and --load"},
    {"nebula", "use --save-interval and --load"},
};

constexpr const char *engine = "it controls DeepSpeed's own engine",
                     *sharded = "ZeRO-1 gathers whole buckets (--bucket-size) here, ZeRO-2 and 3 whole blocks",
                     *windows = "--offload-window sets the size of buffers; their number is fixed",
                     *records = "every run records it: chorale report", *saves = "checkpoints hold whole f32 masters here";

// Keys that have no effect in chorale: the path, DeepSpeed's default, and the reason. One of them, torch_adam, still changes
// the default of weight_decay.
constexpr const char* without_effect[][3] = {
    {"optimizer.legacy_fusion", "false", engine},
    {"optimizer.params.torch_adam", "false", "the update is the same; only the default of weight_decay becomes 0.01"},
    {"optimizer.params.adam_w_mode", "true",
     "Adam and AdamW both decay the weights directly, as with true; Adam with false needs weight_decay 0"},
    {"optimizer.params.set_grad_none", "true", engine},
    {"optimizer.params.foreach", "null", engine},
    {"optimizer.params.fused", "null", engine},
    {"bf16.immediate_grad_update", "false", engine},
    {"bf16.check_grad_overflow", "true", "an Inf or NaN gradient ends the run with an error that names it"},
    {"fp16.fused_mode", "true", engine},
    {"zero_optimization.allgather_partitions", "true", sharded},
    {"zero_optimization.allgather_bucket_size", "500000000", sharded},
    {"zero_optimization.reduce_scatter", "true", "--algorithm chooses how gradients are reduced"},
    {"zero_optimization.use_multi_rank_bucket_allreduce", "true", "--algorithm chooses how gradients are reduced"},
    {"zero_optimization.contiguous_gradients", "true", "gradients are contiguous here"},
    {"zero_optimization.round_robin_gradients", "false", engine},
    {"zero_optimization.parameter_alignment", "false", engine},
    {"zero_optimization.compute_grad_norm", "true", records},
    {"zero_optimization.ignore_unused_parameters", "true", "no parameter is unused here"},
    {"zero_optimization.load_from_fp32_weights", "true", saves},
    {"zero_optimization.elastic_checkpoint", "false", "a checkpoint resumes under any layout"},
    {"zero_optimization.pipeline_loading_checkpoint", "false", saves},
    {"zero_optimization.sub_group_size", "1000000000", "the optimizer updates a rank's whole shard at once"},
    {"zero_optimization.stage3_max_live_parameters", "1000000000", sharded},
    {"zero_optimization.stage3_max_reuse_distance", "1000000000", sharded},
    {"zero_optimization.stage3_prefetch_bucket_size", "50000000", "--prefetch-units counts whole units"},
    {"zero_optimization.stage3_param_persistence_threshold", "100000", sharded},
    {"zero_optimization.stage3_model_persistence_threshold", "9223372036854775807", sharded},
    {"zero_optimization.stage3_module_granularity_threshold", "0", sharded},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", "false", sharded},
    {"zero_optimization.stage3_allgather_sequential", "false", sharded},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", "false", saves},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save", "false", saves},
    {"zero_optimization.cpu_offload_use_pin_memory", "null", "the CPU computes on the memory where tensors are"},
    {"zero_optimization.offload_param.pin_memory", "false", "the CPU computes on the memory where tensors are"},
    {"zero_optimization.offload_param.buffer_count", "5", windows},
    {"zero_optimization.offload_param.buffer_size", "100000000", windows},
    {"zero_optimization.offload_optimizer.pin_memory", "false", "the CPU computes on the memory where tensors are"},
    {"zero_optimization.offload_optimizer.buffer_count", "4", windows},
    {"zero_optimization.offload_optimizer.pipeline_read", "false", "reads always overlap updates"},
    {"zero_optimization.offload_optimizer.pipeline_write", "false", "writes always overlap updates"},
    {"zero_optimization.offload_optimizer.fast_init", "false", engine},
    {"aio.block_size", "1048576", windows},
    {"aio.queue_depth", "8", windows},
    {"aio.thread_count", "1", "io_uring needs no threads"},
    {"aio.intra_op_parallelism", "1", "io_uring needs no threads"},
    {"aio.single_submit", "false", windows},
    {"aio.overlap_events", "true", windows},
    {"aio.use_gds", "false", "files are read to host memory"},
    {"zero_optimization.leaf_module", "null", sharded},
    {"zero_optimization.legacy_stage1", "false", engine},
    {"zero_optimization.memory_efficient_linear", "true", engine},
    {"zero_optimization.override_module_apply", "true", engine},
    {"zero_optimization.log_trace_cache_warnings", "false", engine},
    {"zero_optimization.enable_sanity_checks", "false", engine},
    {"zero_allow_untested_optimizer", "false", "every optimizer here runs under ZeRO"},
    {"zero_force_ds_cpu_optimizer", "true", "the update is the same on all devices"},
    {"activation_checkpointing.number_checkpoints", "null", "--recompute full keeps the input of each block"},
    {"activation_checkpointing.synchronize_checkpoint_boundary", "false", engine},
    {"activation_checkpointing.profile", "false", records},
    {"wall_clock_breakdown", "false", records},
    {"memory_breakdown", "false", records},
    {"timers", "{}", records},
    {"dump_state", "false", "config.toml has every option"},
    {"log_level", "null", "use --log-level"},
    {"dataloader_drop_last", "false", "every batch is whole"},
    {"disable_python_gc", "false", "there is no Python"},
    {"use_data_before_expert_parallelism", "false", "neighboring ranks divide the experts"},
    {"vocabulary_size", "null", "use --vocab-size"},
};

}  // namespace

const std::vector<DsKey>& ds_keys() {
  static const std::vector<DsKey> table = [] {
    std::vector<DsKey> all(std::begin(setting), std::end(setting));
    all.insert(all.end(), std::begin(only), std::end(only));
    for (const auto& [path, instead] : refused_unless_off) all.push_back({path, "", "off", false, "", off, unless, instead});
    for (const AxisRow& axis : all_axes())
      if (*axis.deepspeed) all.push_back({axis.deepspeed, "", "off", false, "", off, unless, axis.deepspeed_remark});
    for (const auto& [path, there, why] : without_effect) all.push_back({path, "", there, false, "", nothing, "", why});
    return all;
  }();
  return table;
}

}  // namespace chorale::train
