// Names that users of PyTorch, Hugging Face, nccl-tests and similar programs type out of habit. A command refuses such a
// name, because the corresponding option of Chorale might have a different meaning. The error suggests that option instead.
// (Megatron's flags are accepted, see megatron_flags.cpp.)
#include <algorithm>

#include "src/base/flag_synonyms.hpp"
#include "src/base/options.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

struct FamiliarRow {
  const char* theirs;      // several names, separated by blanks
  const char* ours;        // options in order of preference; the error suggests the first one that the command has. It is ""
                           // if no option is needed
  const char* about = "";  // the difference between the options, or the alternative
};

constexpr const char *launcher = "the launcher starts the ranks: mpirun -n 4 PROGRAM …",
                     *several_hosts = "the launcher names the hosts: mpirun --host a:4,b:4 -n 8 PROGRAM …";

const FamiliarRow names[] = {
    // length of a run
    {"steps max-steps num-steps n-steps train-steps training-steps total-steps iters iterations num-iters max-iters "
     "num-iterations max-iterations niters",
     "train-iters steps repetitions"},
    {"epochs num-epochs n-epochs num-train-epochs max-epochs epoch", "train-iters",
     "a run has steps, not epochs: one epoch is tokens of --data / (global-batch-size × seq-length) steps"},
    // batches
    {"batch-size batch bs batchsize train-batch-size total-batch-size gbs", "global-batch-size",
     "it counts the sequences of all ranks; --micro-batch-size counts those of one pass"},
    {"per-device-train-batch-size per-device-batch-size micro-batch mbs local-batch-size batch-size-per-gpu "
     "train-micro-batch-size-per-gpu device-batch-size",
     "micro-batch-size"},
    {"gradient-accumulation grad-accum accumulate-grad-batches accum-steps accumulation-steps num-accumulation-steps",
     "gradient-accumulation-steps"},
    // optimizer
    {"learning-rate max-lr", "lr"},
    {"warmup warmup-steps warmup-iters num-warmup-steps", "lr-warmup-iters warm-up"},
    {"warmup-ratio warmup-fraction", "lr-warmup-fraction"},
    {"scheduler lr-scheduler lr-scheduler-type lr-schedule", "lr-decay-style"},
    {"wd decay", "weight-decay"},
    {"betas beta1 beta-1", "adam-beta1"},
    {"beta2 beta-2", "adam-beta2"},
    {"eps epsilon", "adam-eps"},
    {"grad-clip max-grad-norm max-norm clip clip-grad-norm gradient-clip gradient-clip-val gradient-clipping", "clip-grad"},
    {"momentum", "sgd-momentum"},
    {"optim opt", "optimizer"},
    // numbers
    {"precision mixed-precision amp data-type datatype torch-dtype type d", "dtype"},
    {"fp32 f32 tf32 float32", "dtype", "--dtype f32 is the default"},
    {"deterministic", "numerics", "--numerics exact gives the same bits on every layout"},
    // model
    {"model model-name model-size arch architecture", "preset"},
    {"model-name-or-path pretrained from-pretrained hf-model", "load-hf"},
    {"layers n-layer n-layers num-hidden-layers depth", "num-layers"},
    {"heads n-head n-heads num-heads nhead", "num-attention-heads"},
    {"kv-heads n-kv-heads num-kv-heads num-key-value-heads", "num-query-groups"},
    {"hidden hidden-dim d-model dim embed-dim n-embd width hidden", "hidden-size"},
    {"ffn intermediate-size d-ff ffn-dim mlp-dim feedforward-dim", "ffn-hidden-size"},
    {"seq-len seqlen seq sequence-length context-length block-size max-seq-len max-seq-length max-length ctx n-ctx",
     "seq-length tokens"},
    {"vocab vocabulary-size n-vocab", "vocab-size vocabulary"},
    {"vocab-size", "vocabulary"},
    // ranks
    {"tensor-parallel tensor-parallel-size tp-size tp-degree tensor-parallelism tensor", "tp"},
    {"pipeline-parallel pipeline-parallel-size pp-size pp-degree pipeline", "pp"},
    {"data-parallel data-parallel-size dp-size dp-degree", "dp"},
    {"context-parallel cp-size cp-degree", "cp"},
    {"expert-parallel expert-parallel-size ep-size ep-degree", "ep"},
    {"fsdp fully-shard fsdp2", "zero", "FSDP is ZeRO-3: --zero 3, or z3 in a layout"},
    {"ddp", "dp", "data parallelism: --layout dpN on N ranks"},
    {"stage zero-optimization", "zero"},
    {"parallelism strategy strategies mesh", "layout layouts"},
    {"num-micro-batches microbatches num-microbatches chunks", "gradient-accumulation-steps micro-batches"},
    {"pipeline-schedule pp-schedule", "schedule"},
    {"size message-size bytes", "end", "-b 1M -e 1M measures one size"},
    {"nproc-per-node nproc np nprocs gpus ngpus num-gpus n-gpus num-processes world num-ranks nranks world-size t n",
     "ranks"},
    {"nproc-per-node nproc np nprocs gpus ngpus num-gpus n-gpus num-processes world num-ranks nranks world-size ranks g n",
     "", launcher},
    {"nnodes nodes node-rank master-addr master-port rdzv-endpoint rdzv-backend rdzv-id hostfile host local-rank", "",
     several_hosts},
    {"launcher", "", launcher},
    // memory
    {"activation-checkpointing gradient-checkpointing checkpoint-activations activation-checkpoint ac", "recompute",
     "--recompute full or selective"},
    {"offload cpu-offload offload-optimizer offload-param optimizer-offload", "place", "for example --place optimizer=file"},
    {"max-memory memory mem gpu-memory memory-budget", "memory-limit"},
    // data, checkpoints, records
    {"dataset data-dir dataset-path dataset-name train-data data-file input corpus", "data"},
    {"checkpoint ckpt resume resume-from resume-from-checkpoint restore load-checkpoint load-dir ckpt-path model-path "
     "checkpoint-path run",
     "load"},
    {"reduce-op o", "op"},  // for nccl-tests; a command without --op uses the next row
    {"output output-dir out-dir outdir save-dir checkpoint-dir ckpt-dir logdir log-dir save-path results output-file o",
     "run-dir out"},
    {"save-every save-steps save-freq checkpoint-interval checkpoint-every ckpt-interval", "save-interval"},
    {"eval-every eval-steps eval-freq val-interval validation-interval eval-iters", "eval-interval"},
    {"log-every logging-steps print-freq log-freq print-every report-interval", "log-interval"},
    {"profile profiler trace tracing", "trace-steps", "--trace-steps 10:13 writes a trace of these steps"},
    {"wandb tensorboard", "", "every run is recorded: chorale report RUN --tensorboard DIR writes TensorBoard's files"},
    {"num-threads nthreads omp-num-threads", "threads"},
    {"gpu cuda use-cuda", "device", "--device cuda"},
    {"cpu no-cuda", "device", "--device cpu is the default"},
    {"verbose v debug quiet q silent", "log-level"},
    {"file conf cfg yaml", "config"},
    {"random-seed", "seed"},
    {"version", "", "chorale --version prints it"},
    {"compile", "", "there is nothing to compile: kernels are built in"},
    {"vary sweep", "vary", "a suite file varies settings: chorale compare FILE.toml"},
    // generation
    {"max-new-tokens max-tokens num-tokens length max-gen-len n-tokens", "tokens"},
    {"temp", "temperature"},
    {"num-samples num-return-sequences", "samples"},
    {"text prompts", "prompt"},
    // nccl-tests and the OSU benchmarks
    {"minbytes min-bytes min-size min", "begin"},
    {"maxbytes max-bytes max-size max m", "end"},
    {"stepfactor step-factor", "factor"},
    {"stepbytes step-bytes", "factor", "sizes grow by --factor (-f), not by a number of bytes"},
    {"x", "warm-up"},
    {"i", "repetitions", "--repetitions, as -i in OSU's benchmarks; in place of -i in nccl-tests, sizes grow by --factor"},
    {"operation ops collective collectives", "operations"},
    {"r", "root"},
    {"c verify validate correctness validation", "check"},
    {"json csv", "format", "--format json or csv"},
};

// Values that users of other programs type: the names of types in PyTorch and NumPy, and the names of devices and
// operations.
const FamiliarRow values[] = {
    {"fp16 float16 half torch.float16", "f16"},
    {"bfloat16 bfloat torch.bfloat16", "bf16"},
    {"fp32 float32 float single tf32", "f32"},
    {"fp64 float64 double", "f64"},
    {"int32 int", "i32"},
    {"int64 long", "i64"},
    {"uint8 byte", "u8"},
    {"gpu cuda:0", "cuda"},
    {"bcast", "broadcast"},
    {"momentum", "sgd"},
    {"cosine-annealing", "cosine"},
    {"true activation activations", "full"},
    {"deterministic", "exact"},
    {"warning", "warn"},
    {"none silent quiet", "off"},
    {"verbose trace", "debug"},
};

bool among(const std::string& word, const char* list) {
  const std::vector<std::string> words = split(list, ' ');
  return std::ranges::count(words, word) > 0;
}

}  // namespace

Familiar familiar_name(const std::string& name, const std::vector<std::string>& options) {
  for (const FamiliarRow& row : names) {
    if (!among(name, row.theirs)) continue;
    if (!*row.ours) return {"", row.about};
    for (const std::string& ours : split(row.ours, ' '))
      if (std::ranges::count(options, ours)) return {ours, row.about};
  }
  return {};
}

std::string familiar_value(const std::string& value, const std::vector<std::string>& choices) {
  const auto known = [&](const std::string& word) { return std::ranges::count(choices, word) > 0; };
  if (known(lower(value))) return lower(value);
  for (const FamiliarRow& row : values)
    if (among(lower(value), row.theirs) && known(row.ours)) return row.ours;
  return nearest(value, choices);
}

}  // namespace chorale
