// Dynamic loss scaling for f16, because small f16 gradients would underflow to zero (Micikevicius et al. 2018). The loss is
// multiplied by a scale before the backward pass, and the gradients are divided by the scale afterwards. If the gradients
// overflow, the step is skipped. If the scale is already 1, it cannot be the cause, so an overflow is an error of the run.
//
//   overflow: patience − 1; at 0, scale ÷ 2      growth_interval good steps in a row: scale × 2, patience restored
#pragma once
#include <algorithm>
#include <cstdint>

namespace chorale {

class Options;

struct LossScaler {
  bool dynamic = false;
  double scale = 1;
  std::int64_t growth_interval = 1000, hysteresis = 2;
  std::int64_t good_steps = 0, patience = 2;

  void declare(Options& options);
  // overflow: whether the gradients of the step overflowed. Returns whether to skip the step.
  bool overflowed(bool overflow) {
    if (!dynamic || (overflow && scale <= 1)) return false;  // a scale of 1 is not the cause
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
