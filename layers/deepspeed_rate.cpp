// DeepSpeed's schedulers, so that Chorale uses the same learning rates as DeepSpeed for a DeepSpeed config file. W is the
// number of warm-up steps, at least 2, and T the number of steps in the complete schedule. The rates first, peak and minimum
// are fields of LearningRate (include/chorale/optimizer.hpp).
//
//   k        the scheduler's counter. It advances after the optimizer, so step s ≥ 1 uses k = s − 1, and step 0 uses the
//            initial rate.
//   γ(k)     the completed fraction of the warm-up, for k < W: ln(k+1)/ln(W), or k/W for a linear warm-up
//
//   WarmupLR         first + (peak − first)·γ(k), then the peak
//   WarmupDecayLR    the same warm-up, then first + (peak − first)·(T − k)/(T − W), never below `first`
//   WarmupCosineLR   the same warm-up, then minimum + (peak − minimum)·(1 + cos π(k−W+1)/(T−W))/2, then the minimum
//
// Steps 0 and 1 both have the rate `first`, because γ(0) = 0. The only exception is step 0 with WarmupCosineLR, which has
// the rate 0.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "layers/deepspeed_rate.hpp"

namespace chorale {

bool is_deepspeed_scheduler(RateDecay decay) {
  return decay == RateDecay::warmup_lr || decay == RateDecay::warmup_decay_lr || decay == RateDecay::warmup_cosine_lr;
}

double deepspeed_rate(const LearningRate& r, std::int64_t step) {
  const double first = r.first.of(r.peak), minimum = r.minimum.of(r.peak);
  if (step == 0) return r.decay == RateDecay::warmup_cosine_lr ? 0 : first;
  const auto k = static_cast<double>(step - 1), all = static_cast<double>(r.steps.value_or(1));
  const auto rising = static_cast<double>(std::max<std::int64_t>(2, r.warmup));
  const double falling = std::max(1.0, all - rising);
  if (k < rising) {
    const double gamma = r.warmup_style == WarmupStyle::log ? std::log(k + 1) / std::log(rising) : k / rising;
    return first + (r.peak - first) * gamma;
  }
  if (r.decay == RateDecay::warmup_lr) return r.peak;
  if (r.decay == RateDecay::warmup_decay_lr) return first + (r.peak - first) * std::max(0.0, (all - k) / falling);
  const double done = std::min(1.0, (k - rising + 1) / falling);
  return minimum + (r.peak - minimum) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace chorale
