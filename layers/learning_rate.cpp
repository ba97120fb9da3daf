#include "layers/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chorale {

double LearningRate::at(std::int64_t step) const {
  if (is_deepspeed_scheduler(decay)) return deepspeed_rate(*this, step);
  const auto all = static_cast<double>(steps), now = static_cast<double>(step), rising = static_cast<double>(warmup);
  if (step + 1 < warmup && warmup_style == "log") return first + (peak - first) * std::log(now + 1) / std::log(rising);
  if (step < warmup) return first + (peak - first) * (now + 1) / rising;
  if (decay == "constant") return peak;
  const double begins = decay == "wsd" ? std::max(rising, all * (1 - wsd_share)) : rising;
  const double done = std::clamp((now - begins) / std::max(1.0, all - begins), 0.0, 1.0);
  const double left = decay == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return minimum + (peak - minimum) * left;
}

}  // namespace chorale
