#include "experiments/train/megatron_flags.hpp"

#include <fmt/format.h>

#include "parallel/layout/axes.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

using Means = Word::Means;
using Values = std::vector<std::pair<std::string, std::string>>;

Word same(const char* name, const char* option = "") { return {name, Means::same, option[0] ? option : name}; }
Word renamed(const char* name, const char* option) { return {name, Means::sets, option}; }
// A switch (a flag without a value) that sets an option of Chorale to `value`.
Word sets(const char* name, const char* option, const char* value) { return {name, Means::sets, option, {{"true", value}}}; }
// A flag that sets nothing, but must agree with --family.
Word family(const char* name, Values values) {
  return {name, Means::expects, "family", std::move(values),
          "--family llama has RMSNorm, SwiGLU, rotary positions and no biases, --family gpt2 none of these"};
}
Word only(const char* name, const char* value, const char* about) { return {name, Means::sets, "", {{value, ""}}, about}; }
Word nothing(const char* name, const char* why) { return {name, Means::nothing, "", {}, why}; }
Word nothing_to_say(const char* name, const char* why) {
  return {name, Means::nothing, "", {{"true", ""}}, why};
}  // a switch
Word refused(const char* name, const char* instead) { return {name, Means::refused, "", {}, instead}; }

constexpr const char *kernels = "it selects Megatron's kernels", *always = "this is always the case here",
                     *recorded = "every run records it: chorale report",
                     *tokens = "training reads token files: chorale data tokenize makes them",
                     *by_steps = "give steps instead: samples / global-batch-size",
                     *states = "--load always restores the whole state",
                     *board = "chorale watch and chorale report show a run's record";

const Word flags[] = {
    // the model
    same("num-layers"),
    same("hidden-size"),
    {"ffn-hidden-size", Means::same, "ffn-hidden-size", {}, "if missing: 4 × hidden-size, also with SwiGLU"},
    same("num-attention-heads"),
    {"num-query-groups", Means::same, "num-query-groups", {}, "--group-query-attention is not needed"},
    {"group-query-attention",
     Means::differs,
     "num-query-groups",
     {{"true", "0"}},
     "give --num-query-groups N; Megatron's default is 1"},
    {"max-position-embeddings", Means::expects, "seq-length", {}, "a model has --seq-length positions"},
    same("seq-length"),
    same("vocab-size"),
    same("rotary-base"),
    same("norm-epsilon"),
    family("swiglu", {{"true", "llama"}}),
    family("disable-bias-linear", {{"true", "llama"}}),
    family("normalization", {{"RMSNorm", "llama"}, {"LayerNorm", "gpt2"}}),
    family("position-embedding-type", {{"rope", "llama"}, {"learned_absolute", "gpt2"}}),
    family("use-rotary-position-embeddings", {{"true", "llama"}}),
    family("no-position-embedding", {{"true", "llama"}}),
    refused("rotary-seq-len-interpolation-factor", "positions are not scaled"),
    refused("use-rope-scaling", "positions are not scaled"),
    refused("multi-latent-attention", "it is not supported"),
    refused("window-size", "attention reads the whole sequence"),
    refused("mtp-num-layers", "it is not supported"),
    sets("untie-embeddings-and-output-weights", "untie-embeddings", "true"),
    renamed("hidden-dropout", "dropout"),
    renamed("attention-dropout", "dropout"),
    only("rotary-percent", "1.0", "rotary positions apply to whole heads"),
    only("init-method-std", "0.02", "weights are initialized with this standard deviation"),
    same("kv-channels"),
    refused("make-vocab-size-divisible-by", "the vocabulary is not padded: give --vocab-size the padded size"),
    refused("add-qkv-bias", "--family gpt2 has biases, llama none"),
    refused("squared-relu", "--family chooses GELU or SwiGLU"),
    same("qk-layernorm"),
    refused("apply-layernorm-1p", "it is not supported"),
    same("num-experts"),
    same("moe-router-topk"),
    same("moe-ffn-hidden-size"),
    same("moe-shared-expert-intermediate-size"),
    only("moe-layer-freq", "1", "--expert-interval N gives experts to blocks N − 1, 2·N − 1, …, Megatron to 0, N, …"),
    same("expert-interval"),  // Megatron-DeepSpeed's name
    same("moe-router-score-function"),
    same("moe-router-pre-softmax"),
    same("moe-router-topk-scaling-factor"),
    same("moe-router-num-groups"),
    same("moe-router-group-topk"),
    {"moe-expert-capacity-factor",
     Means::same,
     "moe-expert-capacity-factor",
     {},
     "per sequence; if missing: no token is dropped"},
    same("moe-aux-loss-coeff"),
    same("moe-z-loss-coeff"),
    {"moe-router-load-balancing-type",
     Means::same,
     "moe-router-load-balancing-type",
     {},
     "seq_aux_loss or global_aux_loss. The latter takes the loads of the previous step, Megatron's those of this step so "
     "far; "
     "Megatron's default, aux_loss, depends on the micro-batch"},
    same("moe-router-enable-expert-bias"),
    same("moe-router-bias-update-rate"),
    nothing_to_say("moe-shared-expert-overlap", "--moe-combine overlapped is the default"),
    nothing_to_say("moe-grouped-gemm", kernels),
    nothing_to_say("moe-permute-fusion", kernels),
    only("moe-token-dispatcher-type", "alltoall", "use --moe-dispatch"),
    only("moe-router-dtype", "fp32", "scores are computed in f32"),
    sets("moe-router-force-load-balancing", "routing", "uniform"),  // Megatron draws random logits
    // numerics
    sets("bf16", "dtype", "bf16"),
    sets("fp16", "dtype", "f16"),
    same("initial-loss-scale"),
    same("loss-scale-window"),
    same("hysteresis"),
    only("min-loss-scale", "1.0", "the scale stays at 1 or above"),
    refused("loss-scale", "the scale is dynamic: use --initial-loss-scale"),
    refused("fp8-format", "use --bf16"),
    refused("fp8-recipe", "use --bf16"),
    {"accumulate-allreduce-grads-in-fp32",
     Means::differs,
     "grad-dtype",
     {{"true", "bf16"}},
     "a rank's own gradients always add up in f32"},
    {"grad-reduce-in-bf16",
     Means::sets,
     "grad-dtype",
     {{"true", "bf16"}},
     "a rank's own gradients add up in f32 before, Megatron's in bf16"},
    nothing_to_say("attention-softmax-in-fp32", always),
    nothing_to_say("no-query-key-layer-scaling", always),
    refused("apply-query-key-layer-scaling", "scores are computed in f32 and need no scaling"),
    // batches and steps
    same("micro-batch-size"),
    same("global-batch-size"),
    same("train-iters"),
    same("seed"),
    refused("train-samples", by_steps),
    refused("lr-decay-samples", by_steps),
    refused("lr-warmup-samples", by_steps),
    refused("rampup-batch-size", "--global-batch-size is the same in every step"),
    refused("exit-interval", "use --train-iters; SIGTERM ends a run after its step, with a checkpoint"),
    refused("exit-duration-in-mins", "SIGTERM ends a run after its step, with a checkpoint"),
    // the optimizer
    {"optimizer", Means::same, "optimizer", {}, "adam means adamw"},
    same("lr"),
    same("min-lr"),
    {"lr-decay-style",
     Means::same,
     "lr-decay-style",
     {},
     "Megatron's default is linear; WSD is wsd here; inverse-square-root is not supported"},
    same("lr-decay-iters"),
    same("lr-warmup-fraction"),
    same("lr-warmup-init"),
    {"lr-warmup-iters", Means::same, "lr-warmup-iters", {}, "step s, from 1, uses s/N of the rate; Megatron uses (s − 1)/N"},
    refused("lr-wsd-decay-iters", "use --lr-wsd-decay, a share of the run"),
    only("lr-wsd-decay-style", "linear", "wsd falls linearly"),
    same("weight-decay"),
    only("weight-decay-incr-style", "constant", "--weight-decay is constant"),
    refused("start-weight-decay", "--weight-decay is constant"),
    refused("end-weight-decay", "--weight-decay is constant"),
    same("adam-beta1"),
    same("adam-beta2"),
    same("adam-eps"),
    same("sgd-momentum"),
    same("clip-grad"),
    refused("override-opt_param-scheduler", "the rate follows from this run's options"),
    refused("use-checkpoint-opt_param-scheduler", "--config RUN/config.toml restores the options of a run"),
    // memory
    renamed("recompute-granularity", "recompute"),
    sets("recompute-activations", "recompute", "selective"),
    only("recompute-method", "uniform", "every block is recomputed from its input"),
    only("recompute-num-layers", "1", "every block is recomputed from its input"),
    refused("recompute-modules", "--recompute selective recomputes norms and the activation"),
    sets("distribute-saved-activations", "partition-activations", "true"),
    refused("cpu-offloading", "nothing is offloaded: use --recompute or --zero"),
    // ranks
    same("sequence-parallel"),  // megatron_flags() inserts the sizes of the axes before this row
    same("use-distributed-optimizer"),
    same("num-virtual-stages-per-pipeline-rank", "virtual-stages"),
    refused("num-layers-per-virtual-pipeline-stage", "use --virtual-stages: layers / (stages × this value)"),
    only("cp-comm-type", "all_gather", "use --context-scheme"),
    refused("distributed-backend", "use --backend auto, mpi, ucx, shm or nccl, or one per axis"),
    sets("use-torch-fsdp2", "zero", "3"),
    sets("use-megatron-fsdp", "zero", "3"),
    refused("data-parallel-sharding-strategy", "use --zero 1, 2 or 3"),
    {"overlap-grad-reduce", Means::expects, "reducer", {{"true", "bucketed"}}, "remove --reducer naive"},
    nothing_to_say("overlap-param-gather", "the ZeRO stage decides when parameters are gathered"),
    refused("ddp-bucket-size", "use --bucket-size, in bytes"),
    nothing("distributed-timeout-minutes", "a stalled wait times out by itself"),
    nothing_to_say("tp-comm-overlap", kernels),
    nothing_to_say("no-async-tensor-model-parallel-allreduce", kernels),
    // Megatron's own engine
    nothing_to_say("cross-entropy-loss-fusion", kernels),
    nothing_to_say("no-create-attention-mask-in-dataloader", kernels),
    nothing_to_say("manual-gc", "there is no Python"),
    nothing("manual-gc-interval", "there is no Python"),
    nothing_to_say("calculate-per-token-loss", always),
    nothing_to_say("decoupled-weight-decay", always),
    nothing_to_say("exit-on-missing-checkpoint", always),
    refused("use-checkpoint-args", "--config RUN/config.toml restores the options of a run"),
    nothing_to_say("use-flash-attn", "attention never stores scores here"),
    nothing("transformer-impl", kernels),
    nothing_to_say("use-mcore-models", kernels),
    nothing_to_say("no-gradient-accumulation-fusion", kernels),
    nothing_to_say("no-masked-softmax-fusion", kernels),
    nothing_to_say("no-bias-gelu-fusion", kernels),
    nothing_to_say("no-bias-swiglu-fusion", kernels),
    nothing_to_say("no-bias-dropout-fusion", kernels),
    nothing_to_say("no-rope-fusion", kernels),
    nothing_to_say("no-persist-layer-norm", kernels),
    nothing("attention-backend", kernels),
    nothing("cuda-graph-impl", kernels),
    nothing_to_say("enable-cuda-graph", kernels),
    nothing_to_say("use-legacy-models", kernels),
    nothing_to_say("check-for-nan-in-loss-and-grad", "a step with NaN ends the run: --on-nan"),
    refused("no-check-for-nan-in-loss-and-grad", "a step with NaN ends the run, or is left out: --on-nan skip"),
    // data
    renamed("data-path", "data"),
    refused("train-data-path", "use --data FILE"),
    refused("valid-data-path", "1 % of --data is held out"),
    refused("test-data-path", "1 % of --data is held out"),
    only("split", "99,1,0", "1 % of --data is held out"),
    refused("tokenizer-type", tokens),
    refused("tokenizer-model", tokens),
    refused("vocab-file", tokens),
    refused("merge-file", tokens),
    refused("mock-data", "use --data synthetic, the default"),
    refused("reset-position-ids", "--document-mask TOKEN, with the end-of-text token, does all three"),
    refused("reset-attention-mask", "--document-mask TOKEN, with the end-of-text token, does all three"),
    refused("eod-mask-loss", "--document-mask TOKEN, with the end-of-text token, does all three"),
    refused("dataloader-type", "samples are drawn in random order, each once per epoch"),
    nothing("data-cache-path", "there is no cache"),
    nothing("num-workers", "tokens are mapped into memory"),
    nothing_to_say("no-mmap-bin-files", "tokens are mapped into memory"),
    // checkpoints, records
    same("save", "save-dir"),
    same("load"),
    same("save-interval"),
    same("eval-interval"),
    same("log-interval"),
    refused("eval-iters", "use --eval-samples: eval-iters × global-batch-size"),
    refused("no-load-optim", states),
    refused("no-load-rng", states),
    refused("no-save-optim", states),
    refused("finetune", "--load-hf DIR starts from the weights of a model"),
    nothing("ckpt-format", "checkpoints are safetensors"),
    nothing_to_say("use-dist-ckpt", "every checkpoint can be loaded on any layout"),
    nothing("dist-ckpt-format", "checkpoints are safetensors"),
    nothing_to_say("auto-detect-ckpt-format", "checkpoints are safetensors"),
    nothing_to_say("ckpt-fully-parallel-save", "every rank saves its part"),
    nothing_to_say("exit-signal-handler", "SIGTERM always ends a run after its step, with a checkpoint"),
    refused("profile", "--trace-steps FIRST:LAST writes a trace"),
    refused("profile-step-start", "--trace-steps FIRST:LAST writes a trace"),
    refused("profile-step-end", "--trace-steps FIRST:LAST writes a trace"),
    refused("use-pytorch-profiler", "--trace-steps FIRST:LAST writes a trace"),
    refused("tensorboard-dir", board),
    refused("wandb-project", board),
    refused("wandb-exp-name", board),
    nothing_to_say("log-throughput", recorded),
    nothing_to_say("log-params-norm", "the norm of the gradient is recorded instead"),
    nothing_to_say("log-timers-to-tensorboard", recorded),
    nothing_to_say("log-memory-to-tensorboard", recorded),
    nothing_to_say("log-validation-ppl-to-tensorboard", recorded),
    nothing("timing-log-level", recorded),
    nothing("tensorboard-log-interval", recorded),
    nothing("tensorboard-queue-size", recorded),
    // Megatron-DeepSpeed
    nothing_to_say("deepspeed", "--ds-config is enough"),
    renamed("deepspeed-config", "ds-config"),
    same("zero-stage", "zero"),
    renamed("moe-expert-parallel-size", "ep"),  // Megatron-DeepSpeed's name
};

}  // namespace

const std::vector<Word>& megatron_flags() {
  static const std::vector<Word> table = [] {
    std::vector<Word> all;
    for (const Word& word : flags) {
      if (word.name == "sequence-parallel")
        for (const AxisRow& axis : all_axes())
          if (*axis.megatron) all.push_back(same(axis.megatron, axis.name));
      all.push_back(word);
    }
    return all;
  }();
  return table;
}

std::string megatron_table() {
  std::string table = "| Megatron's | here |\n|---|---|\n";
  for (const Word& word : megatron_flags()) {
    std::vector<std::string> values;
    for (const auto& [theirs, ours] : word.values) {
      const std::string option = fmt::format("`--{} {}`", word.option, ours);
      const char* verb = word.means == Means::sets ? "is" : "requires";
      values.push_back(word.option.empty() ? theirs
                       : word.is_switch()  ? option
                                           : fmt::format("{} {} {}", theirs, verb, option));
    }
    if (values.empty()) values.push_back(fmt::format("`--{}`", word.option));
    const bool named = word.is_switch() || word.values.empty();
    std::string here;
    switch (word.means) {
      case Means::same: here = word.name == word.option ? "the same" : values[0]; break;
      case Means::sets: here = (word.option.empty() ? "refused unless " : "") + join(values, ", "); break;
      case Means::expects:
        here = (named ? "requires " : "") + join(values, ", ") + (word.values.empty() ? " to be equal" : "");
        break;
      case Means::differs: here = "excludes " + join(values, ", "); break;
      case Means::nothing: here = "no effect"; break;
      case Means::refused: here = "refused"; break;
    }
    table += fmt::format("| `--{}` | {}{} |\n", word.name, here, word.about.empty() ? "" : ": " + word.about);
  }
  return table;
}

}  // namespace chorale::train
