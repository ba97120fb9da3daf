#include "layers/deepspeed_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chorale {

LearningRate LearningRate::over(std::int64_t steps_of_run) const {
  LearningRate settled = *this;
  settled.steps = steps.value_or(steps_of_run);
  if (warmup_share > 0) settled.warmup = static_cast<std::int64_t>(warmup_share * static_cast<double>(*settled.steps));
  settled.warmup_share = 0;
  settled.minimum = std::min(minimum.of(peak), peak);
  settled.first = std::min(first.of(peak), peak);
  return settled;
}

double LearningRate::at(std::int64_t step) const {
  if (is_deepspeed_scheduler(decay)) return deepspeed_rate(*this, step);
  const double low = minimum.of(peak), start = first.of(peak);
  const auto all = static_cast<double>(steps.value_or(1)), now = static_cast<double>(step),
             rising = static_cast<double>(warmup);
  if (step + 1 < warmup && warmup_style == WarmupStyle::log)
    return start + (peak - start) * std::log(now + 1) / std::log(rising);
  if (step < warmup) return start + (peak - start) * (now + 1) / rising;
  if (decay == RateDecay::constant) return peak;
  const double begins = decay == RateDecay::wsd ? std::max(rising, all * (1 - wsd_share)) : rising;
  const double done = std::clamp((now - begins) / std::max(1.0, all - begins), 0.0, 1.0);
  const double left = decay == RateDecay::cosine ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return low + (peak - low) * left;
}

}  // namespace chorale
