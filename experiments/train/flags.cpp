#include "experiments/train/flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/train/device.hpp"
#include "parallel/context/context.hpp"
#include "src/base/error.hpp"

namespace chorale::train {

// Sets the defaults of a training run that differ from the library's defaults.
Flags::Flags() {
  asked_.optimizer.rate.warmup = 10;
  asked_.scaler.scale = 32768;
}

void Flags::declare(Options& o) {
  shape_.declare(o);
  asked_.declare_numbers(o);
  o.section("batches and steps", Effect::work);
  o.add("global-batch-size", "0", global_batch_, "sequences per step; 0: the micro-batches of all replicas")
      .range(0, 1e7)
      .part_of(Whole::scale);
  o.add("micro-batch-size", "0", micro_batch_,
        "sequences per micro-batch; 0: a replica's share of the batch, or 1 in a pipeline")
      .range(0, 1e7)
      .changes(Effect::speed)
      .part_of(Whole::scale);
  o.add("gradient-accumulation-steps", "0", accumulation_, "micro-batches per step of a replica; 0: from the batch sizes")
      .range(0, 1e7)
      .changes(Effect::speed)
      .part_of(Whole::scale);
  o.add(
       "document-mask", document_mask_.documents,
       "separate the documents of a sample: no attention and no targets across borders, and positions restart. TOKEN ends a "
       "document; FILE.idx lists them; random:MEAN draws them")
      .words("none|TOKEN|FILE.idx|random:MEAN");
  o.add("split-documents", document_mask_.split, "cut documents that are longer than a sequence")
      .only_where("separate documents",
                  [this] { return document_mask_.documents == "none" ? "document-mask is none" : ""; });
  o.add("train-iters", steps_, "training steps").range(1, 1e9).part_of(Whole::scale);
  asked_.optimizer.declare(o);
  asked_.scaler.declare(o);
  o.section("the run", Effect::speed);
  o.add("seed", asked_.seed, "seed of initial weights, data order and dropout").range(0, 9e18).changes(Effect::learning);
  o.add("threads", "0", threads_, "threads per rank; 0: its share of the cores").range(0, 4096).part_of(Whole::scale);
}

void Flags::declare_parallel(Options& o, const AskedLayout& layout) {
  asked_.declare_parallel(o, layout);
  o.add("ds-config", "read options from a DeepSpeed configuration file").words("FILE");
}

void Flags::declare_offload(Options& o) {
  places_.declare(o, asked_.offload);
  o.add("update", asked_.update,
        "when the optimizer updates: after the norm; during the backward pass; the same, but rolled back if "
        "gradients are clipped; or during the next step")
      .changes(Effect::work);
}

// global batch = micro-batch × accumulation steps × replicas. Computes the sizes that the user did not give from the given
// sizes. If accumulation steps were given, the sizes must satisfy the equation.
BatchOptions Flags::batch_on(const Layout& layout) const {
  const std::int64_t replicas = layout.replicas(), steps = std::max<std::int64_t>(accumulation_.value_or(0), 1);
  if (!global_batch_ && !micro_batch_)
    usage_error("no batch size is given", "global-batch-size and micro-batch-size are both 0",
                "give one of them: --global-batch-size 32");
  BatchOptions batch{.packed = document_mask_.documents != "none"};
  batch.global = global_batch_ ? *global_batch_ : *micro_batch_ * steps * replicas;
  if (micro_batch_)
    batch.micro = *micro_batch_;
  else if (accumulation_)
    batch.micro = batch.global / (steps * replicas);
  else
    batch.micro = default_micro_batch(layout, batch.global);
  if (!accumulation_ || (batch.micro * steps * replicas == batch.global && batch.micro > 0)) return batch;
  const std::string micro = micro_batch_ ? fmt::format("micro-batch-size {} × ", *micro_batch_) : "";
  const std::int64_t whole = std::max<std::int64_t>(batch.micro, 1) * steps * replicas;
  usage_error("batch sizes do not agree",
              fmt::format("global-batch-size {} is {} {}gradient-accumulation-steps {} × replicas {}", batch.global,
                          micro.empty() ? "not a multiple of" : "not", micro, steps, replicas),
              fmt::format("try --global-batch-size {}, or remove one of the sizes", whole));
}

std::string Flags::long_warmup(const Options& options) const {
  const LearningRate& rate = asked_.optimizer.rate;
  const std::int64_t rising = std::min(rate.over(steps_).warmup, steps_);
  if (rate.warmup_share > 0 || options.origin("lr-warmup-iters") != "default" || 2 * rising <= steps_) return "";
  return fmt::format("the learning rate still rises in {} of {} steps, because --lr-warmup-iters is {} by default", rising,
                     steps_, rate.warmup);
}

TrainingOptions Flags::on(const Layout& layout, const Here& here) const {
  TrainingOptions o = asked_;
  o.shape = shape_.shape();
  o.batch = batch_on(layout);
  o.optimizer.rate = o.optimizer.rate.over(steps_);
  o.scaler.dynamic = o.compute == DType::f16;
  o.scaler.patience = o.scaler.hysteresis;
  if (!o.scaler.dynamic) o.scaler = {};
  if (!here.hosts_known) o.context = before_hosts_are_known(o.context, o.shape, layout);
  o.memory.limit = here.memory_limit;
  o.kernels.threads = threads_ ? static_cast<int>(*threads_) : here.threads;
  if (here.device) here.device->compute_there(o.kernels, o.numerics);
  places_.place(o.offload, here.on_accelerator);
  return o;
}

}  // namespace chorale::train
