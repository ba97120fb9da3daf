// The learning rate of each step. The rate starts with a linear or logarithmic warm-up from `first` to the peak. One of
// these decays follows:
//
//   constant      linear ╲     cosine ⌒╲       wsd ‾‾‾‾╲   (warm-up, stable, decay: Hu et al. 2024)
//
// Alternatively, the rate follows one of DeepSpeed's schedulers, with DeepSpeed's name and exact formula
// (deepspeed_rate.cpp).
#pragma once
#include <cstdint>
#include <optional>

#include <chorale/named.hpp>
#include "src/base/relative.hpp"

namespace chorale {

class Options;

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
  std::optional<std::int64_t> steps = {};  // length of the complete schedule; empty: the length of the run
  double wsd_share = 0.2;                  // final fraction of the steps, in which wsd decays
  double warmup_share = 0;                 // warm-up as a fraction of the steps; 0: `warmup` steps

  void declare(Options& options);
  LearningRate over(std::int64_t steps_of_run) const;  // returns a copy in which all relative and empty values are resolved
  double at(std::int64_t step) const;                  // steps count from 0
};

bool is_deepspeed_scheduler(RateDecay decay);
double deepspeed_rate(const LearningRate& rate, std::int64_t step);

}  // namespace chorale
