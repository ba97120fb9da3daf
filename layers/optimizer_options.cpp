#include "layers/deepspeed_rate.hpp"
#include "layers/optimizer.hpp"
#include "src/base/options.hpp"

namespace chorale {

std::unique_ptr<UpdateRule> rule_of(const OptimizerOptions& o) {
  switch (o.kind) {
    case OptimizerKind::adamw: return adamw_rule(o.beta1, o.beta2, o.epsilon, o.decay);
    case OptimizerKind::sgd: return sgd_rule(o.momentum, o.decay);
  }
  __builtin_unreachable();
}

void OptimizerOptions::declare(Options& o) {
  o.section("optimizer", Effect::learning);
  const Option& rule = o.add("optimizer", kind, "update rule").also("adam", "adamw").changes(Effect::work);
  o.add_no("no-master-weights", masters,
           "update bf16 weights in place with stochastic rounding (no f32 master copy; saves 4 B/param)")
      .changes(Effect::work);
  rate.declare(o);
  o.add("weight-decay", decay, "weight decay; biases and norms do not decay").range(0, 100);
  o.add("adam-beta1", beta1, "decay of Adam's first moment").range(0, 0.999999).only_with(rule, OptimizerKind::adamw);
  o.add("adam-beta2", beta2, "decay of Adam's second moment").range(0, 0.999999).only_with(rule, OptimizerKind::adamw);
  o.add("adam-eps", epsilon, "added to the square root of the second moment")
      .range(0, 1)
      .only_with(rule, OptimizerKind::adamw);
  o.add("sgd-momentum", momentum, "momentum of sgd").range(0, 1).only_with(rule, OptimizerKind::sgd);
  o.add("clip-grad", clip, "clip the gradient to this norm; 0: no clipping").range(0, 1e9);
}

void LearningRate::declare(Options& o) {
  const auto rises = [this] {
    return warmup > 0 || warmup_share > 0 || is_deepspeed_scheduler(decay) ? "" : "lr-warmup-iters is 0";
  };
  const auto falls = [this] {
    const bool stays = decay == RateDecay::constant || decay == RateDecay::warmup_lr;
    return stays && warmup_share == 0 ? std::string("lr-decay-style is ") + name_of(decay) : "";
  };
  o.add("lr", peak, "highest learning rate").range(0, 100);
  const Option& style =
      o.add("lr-decay-style", decay, "how the rate falls; the Warmup… styles are DeepSpeed's schedulers").also("WSD", "wsd");
  o.add_relative("min-lr", "lr", minimum, "lowest rate, at the end; absolute, or relative such as 0.1*lr")
      .range(0, 100)
      .only_with(style, RateDecay::linear, RateDecay::cosine, RateDecay::wsd, RateDecay::warmup_cosine_lr);
  o.add("lr-decay-iters", "0", steps, "steps until the rate is lowest; 0: train-iters")
      .range(0, 1e9)
      .only_where("a rate that falls", falls);
  const Option& share =
      o.add("lr-warmup-fraction", warmup_share, "warm-up as a share of lr-decay-iters; 0: use lr-warmup-iters").range(0, 1);
  o.add("lr-warmup-iters", warmup, "steps in which the rate rises").range(0, 1e9).only_with(share, "0");
  o.add_relative("lr-warmup-init", "lr", first, "rate before the first step of the warm-up")
      .range(0, 100)
      .only_where("a warm-up", rises);
  o.add("lr-warmup-style", warmup_style, "how the rate rises").only_where("a warm-up", rises);
  o.add("lr-wsd-decay", wsd_share, "share of the run in which the wsd rate falls")
      .range(0, 1)
      .only_with(style, RateDecay::wsd);
}

void LossScaler::declare(Options& o) {
  const Option& type = o.option("dtype");
  o.add("initial-loss-scale", scale, "loss scale of the first step").range(1, 0x1p40).only_with(type, DType::f16);
  o.add("loss-scale-window", growth_interval, "good steps before the loss scale doubles")
      .range(1, 1e9)
      .only_with(type, DType::f16);
  o.add("hysteresis", hysteresis, "overflows before the loss scale halves").range(1, 1e6).only_with(type, DType::f16);
}

}  // namespace chorale
