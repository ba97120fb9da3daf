// The options of the optimizer: its rule, its learning rate, the clipping of gradients, and the loss scale of f16.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include <chorale/named.hpp>
#include <chorale/relative.hpp>

namespace chorale {

class Options;

// The learning rate of each step. The rate starts with a linear or logarithmic warm-up from `first` to the peak. One of
// these decays follows:
//
//   constant      linear ╲     cosine ⌒╲       wsd ‾‾‾‾╲   (warm-up, stable, decay: Hu et al. 2024)
//
// Alternatively, the rate follows one of DeepSpeed's schedulers, with DeepSpeed's name and exact formula
// (deepspeed_rate.cpp).
enum class RateDecay : std::uint8_t { constant, linear, cosine, wsd, warmup_lr, warmup_decay_lr, warmup_cosine_lr };
constexpr auto names_of(RateDecay) {
  return Names{"decay of the rate", "constant", "linear", "cosine", "wsd", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
}
enum class WarmupStyle : std::uint8_t { linear, log };
constexpr auto names_of(WarmupStyle) { return Names{"style of warm-up", "linear", "log"}; }

struct LearningRate {
  RateDecay decay = RateDecay::cosine;
  double peak = 1e-3;
  Relative minimum = 1e-4, first = 0;  // absolute, or relative to the peak
  WarmupStyle warmup_style = WarmupStyle::linear;
  std::int64_t warmup = 0;
  std::optional<std::int64_t> steps = {};  // length of the complete schedule; if empty, the length of the run
  double wsd_share = 0.2;                  // final fraction of the steps, in which `wsd` lowers the rate
  double warmup_share = 0;                 // warm-up as a fraction of the steps; if it is 0, `warmup` gives the steps

  void declare(Options& options);
  LearningRate over(std::int64_t steps_of_run) const;  // returns a copy in which all relative and empty values are resolved
  double at(std::int64_t step) const;                  // steps count from 0
};

enum class OptimizerKind : std::uint8_t { adamw, sgd };
constexpr auto names_of(OptimizerKind) { return Names{"optimizer", "adamw", "sgd"}; }

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  // Whether to keep f32 copies of 16-bit weights. If false, steps update bf16 weights in place, with stochastic rounding.
  bool masters = true;
  LearningRate rate;
  double decay = 0.1;  // weight decay; biases and norms do not decay
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, momentum = 0.9;
  double clip = 1;  // the largest gradient norm; 0 means no clipping
  void declare(Options& options);
};

// Dynamic loss scaling for f16, because small f16 gradients would underflow to zero (Micikevicius et al. 2018). The loss is
// multiplied by a scale before the backward pass, and the gradients are divided by the scale afterwards. If the gradients
// overflow, the step is skipped. A scale of 1 cannot cause an overflow. An overflow at scale 1 is therefore an error of the
// run.
//
//   overflow: patience − 1; at 0, scale ÷ 2      growth_interval good steps in a row: scale × 2, patience restored
struct LossScaler {
  bool dynamic = false;
  double scale = 1;
  std::int64_t growth_interval = 1000, hysteresis = 2;
  std::int64_t good_steps = 0, patience = 2;

  void declare(Options& options);
  // overflow: whether the gradients of the step overflowed. Returns whether to skip the step.
  bool overflowed(bool overflow) {
    if (!dynamic || (overflow && scale <= 1)) return false;  // a scale of 1 cannot be the cause of an overflow
    if (overflow) {
      good_steps = 0;
      if (--patience <= 0) scale = std::max(1.0, scale / 2);
      patience = std::max<std::int64_t>(patience, 0);
      return true;
    }
    if (++good_steps >= growth_interval) {
      good_steps = 0;
      patience = hysteresis;
      scale *= 2;
    }
    return false;
  }
};

}  // namespace chorale
