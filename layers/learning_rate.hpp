// The learning rate of each step: a linear or logarithmic warm-up from `first` to the peak, then one of
//
//   constant      linear ╲     cosine ⌒╲       wsd ‾‾‾‾╲   (warm-up, stable, decay: Hu et al. 2024)
//
// or one of DeepSpeed's schedulers under its own name, with its exact formula (deepspeed_rate.cpp).
#pragma once
#include <cstdint>
#include <string>

namespace chorale {

struct LearningRate {
  std::string decay = "cosine";  // constant, linear, cosine, wsd, WarmupLR, WarmupDecayLR, WarmupCosineLR
  double peak = 1e-3, minimum = 1e-4, first = 0;
  std::string warmup_style = "linear";  // or log
  std::int64_t warmup = 0, steps = 1;   // steps: length of the whole schedule, usually of the run
  double wsd_share = 0.2;               // fraction of the steps, at the end, in which wsd decays

  double at(std::int64_t step) const;  // steps count from 0
};

bool is_deepspeed_scheduler(const std::string& name);
double deepspeed_rate(const LearningRate& rate, std::int64_t step);

}  // namespace chorale
