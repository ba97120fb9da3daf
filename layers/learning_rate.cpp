#include "layers/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace chorale {

double LearningRate::at(std::int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay == "constant") return peak;
  const auto all = static_cast<double>(steps), now = static_cast<double>(step);
  const double begins =
      decay == "wsd" ? std::max(static_cast<double>(warmup), all * (1 - wsd_share)) : static_cast<double>(warmup);
  const double done = std::clamp((now - begins) / std::max(1.0, all - begins), 0.0, 1.0);
  const double left = decay == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
  return minimum + (peak - minimum) * left;
}

}  // namespace chorale
