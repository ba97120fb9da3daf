#include "experiments/train/flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale::train {

void Flags::declare(Options& o) {
  shape_.declare(o);
  o.section("numbers and memory");
  o.add("dtype", dtype_, "type of parameters and activations in matrix products").one_of({"f32", "bf16", "f16", "f64"});
  o.add("numerics", numerics_, "fast, or exact: the same bits on every layout").one_of({"fast", "exact"});
  o.add("recompute", recompute_, "activations to recompute in the backward pass instead of keeping them")
      .one_of({"none", "selective", "full"});
  o.section("batches and steps");
  o.add("global-batch-size", global_batch_, "sequences per step; 0: the micro-batches of all replicas").range(0, 1e7);
  o.add("micro-batch-size", micro_batch_, "sequences per micro-batch; 0: a replica's share of the batch, or 1 in a pipeline")
      .range(0, 1e7);
  o.add("gradient-accumulation-steps", accumulation_, "micro-batches per step of a replica; 0: from the batch sizes")
      .range(0, 1e7);
  o.add(
       "document-mask", document_mask_.documents,
       "separate the documents of a sample: no attention and no targets across borders, and positions restart. TOKEN ends a "
       "document; FILE.idx lists them; random:MEAN draws them")
      .words("none|TOKEN|FILE.idx|random:MEAN");
  o.add("split-documents", document_mask_.split, "cut documents that are longer than a sequence")
      .only_where("separate documents",
                  [this] { return document_mask_.documents == "none" ? "document-mask is none" : ""; });
  o.add("train-iters", steps_, "training steps").range(1, 1e9);
  o.section("optimizer");
  o.add("optimizer", optimizer_, "update rule").one_of({"adamw", "sgd"}).also("adam", "adamw");
  o.add("no-master-weights", no_masters_,
        "update bf16 weights in place with stochastic rounding (no f32 master copy; saves 4 B/param)");
  declare_rate(o);
  o.add("weight-decay", decay_, "weight decay; biases and norms do not decay").range(0, 100);
  o.add("adam-beta1", beta1_, "decay of Adam's first moment").range(0, 0.999999).only_with("optimizer", {"adamw"});
  o.add("adam-beta2", beta2_, "decay of Adam's second moment").range(0, 0.999999).only_with("optimizer", {"adamw"});
  o.add("adam-eps", epsilon_, "added to the square root of the second moment").range(0, 1).only_with("optimizer", {"adamw"});
  o.add("sgd-momentum", momentum_, "momentum of sgd").range(0, 1).only_with("optimizer", {"sgd"});
  o.add("clip-grad", clip_, "clip the gradient to this norm; 0: no clipping").range(0, 1e9);
  o.add("initial-loss-scale", first_scale_, "loss scale of the first step").range(1, 0x1p40).only_with("dtype", {"f16"});
  o.add("loss-scale-window", scale_window_, "good steps before the loss scale doubles")
      .range(1, 1e9)
      .only_with("dtype", {"f16"});
  o.add("hysteresis", hysteresis_, "overflows before the loss scale halves").range(1, 1e6).only_with("dtype", {"f16"});
  o.section("the run");
  o.add("seed", seed_, "seed of initial weights, data order and dropout").range(0, 9e18);
  o.add("threads", threads_, "threads per rank; 0: its share of the cores").range(0, 4096);
}

void Flags::declare_rate(Options& o) {
  const auto rises = [this] {
    return rate_.warmup > 0 || warmup_share_ > 0 || is_deepspeed_scheduler(rate_.decay) ? "" : "lr-warmup-iters is 0";
  };
  const auto falls = [this] {
    const bool stays = rate_.decay == "constant" || rate_.decay == "WarmupLR";
    return stays && warmup_share_ == 0 ? "lr-decay-style is " + rate_.decay : "";
  };
  o.add("lr", rate_.peak, "highest learning rate").range(0, 100);
  o.add_relative("min-lr", "lr", lowest_rate_, "lowest rate, at the end; absolute, or relative such as 0.1*lr")
      .range(0, 100)
      .only_with("lr-decay-style", {"linear", "cosine", "wsd", "WarmupCosineLR"});
  o.add("lr-decay-style", rate_.decay, "how the rate falls; the Warmup… styles are DeepSpeed's schedulers")
      .one_of({"constant", "linear", "cosine", "wsd", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"})
      .also("WSD", "wsd");
  o.add("lr-decay-iters", decay_steps_, "steps until the rate is lowest; 0: train-iters")
      .range(0, 1e9)
      .only_where("a rate that falls", falls);
  o.add("lr-warmup-iters", rate_.warmup, "steps in which the rate rises")
      .range(0, 1e9)
      .only_with("lr-warmup-fraction", {"0"});
  o.add("lr-warmup-fraction", warmup_share_, "warm-up as a share of lr-decay-iters; 0: use lr-warmup-iters").range(0, 1);
  o.add_relative("lr-warmup-init", "lr", first_rate_, "rate before the first step of the warm-up")
      .range(0, 100)
      .only_where("a warm-up", rises);
  o.add("lr-warmup-style", rate_.warmup_style, "how the rate rises")
      .one_of({"linear", "log"})
      .only_where("a warm-up", rises);
  o.add("lr-wsd-decay", rate_.wsd_share, "share of the run in which the wsd rate falls")
      .range(0, 1)
      .only_with("lr-decay-style", {"wsd"});
}

// global batch = micro-batch × accumulation steps × replicas. Computes the sizes that were given as 0 from the other sizes.
// If accumulation steps were given, the sizes must satisfy the equation.
void Flags::take_batch(TrainingOptions& o, const Layout& layout) const {
  const std::int64_t replicas = layout.replicas();
  o.global_batch = global_batch_;
  o.micro_batch = micro_batch_;
  const std::int64_t steps = std::max<std::int64_t>(accumulation_, 1);
  if (global_batch_ == 0) {
    if (micro_batch_ == 0)
      usage_error("no batch size is given", "global-batch-size and micro-batch-size are both 0",
                  "give one of them: --global-batch-size 32");
    o.global_batch = micro_batch_ * steps * replicas;
  }
  if (micro_batch_ == 0 && accumulation_ == 0)
    o.micro_batch = layout.stages() > 1 ? 1 : std::max<std::int64_t>(1, o.global_batch / replicas);
  if (accumulation_ == 0) return;
  if (micro_batch_ == 0) o.micro_batch = o.global_batch / (steps * replicas);
  if (o.micro_batch * steps * replicas == o.global_batch && o.micro_batch > 0) return;
  const std::string micro = micro_batch_ ? fmt::format("micro-batch-size {} × ", micro_batch_) : "";
  const std::int64_t whole = std::max<std::int64_t>(o.micro_batch, 1) * steps * replicas;
  usage_error("batch sizes do not agree",
              fmt::format("global-batch-size {} is {} {}gradient-accumulation-steps {} × replicas {}", o.global_batch,
                          micro.empty() ? "not a multiple of" : "not", micro, steps, replicas),
              fmt::format("try --global-batch-size {}, or remove one of the sizes", whole));
}

std::string Flags::long_warmup(const Options& options) const {
  const std::int64_t rising = std::min(rate().warmup, steps_);
  if (warmup_share_ > 0 || options.origin("lr-warmup-iters") != "default" || 2 * rising <= steps_) return "";
  return fmt::format("the learning rate still rises in {} of {} steps, because --lr-warmup-iters is {} by default", rising,
                     steps_, rate_.warmup);
}

LearningRate Flags::rate() const {
  LearningRate rate = rate_;
  rate.steps = decay_steps_ ? decay_steps_ : steps_;
  if (warmup_share_ > 0) rate.warmup = static_cast<std::int64_t>(warmup_share_ * static_cast<double>(rate.steps));
  rate.minimum = std::min(lowest_rate_.of(rate.peak), rate.peak);
  rate.first = std::min(first_rate_.of(rate.peak), rate.peak);
  return rate;
}

TrainingOptions Flags::training(int threads, const Layout& layout) const {
  TrainingOptions o{.shape = shape_.shape()};
  o.remake = recompute_ == "full" ? Remake::full : recompute_ == "selective" ? Remake::selective : Remake::none;
  o.compute = dtype_named(dtype_);
  o.numerics = numerics_;
  take_batch(o, layout);
  o.packed = document_mask_.documents != "none";
  o.optimizer = optimizer_;
  o.masters = !no_masters_;
  o.beta1 = beta1_, o.beta2 = beta2_, o.epsilon = epsilon_, o.decay = decay_, o.momentum = momentum_;
  o.clip = clip_;
  o.rate = rate();
  if (o.compute == DType::f16)
    o.scaler = {.dynamic = true,
                .scale = first_scale_,
                .growth_interval = scale_window_,
                .hysteresis = hysteresis_,
                .patience = hysteresis_};
  o.seed = static_cast<std::uint64_t>(seed_);
  o.threads = threads_ ? static_cast<int>(threads_) : threads;
  return o;
}

}  // namespace chorale::train
