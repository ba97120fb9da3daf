// Dynamic loss scaling for f16, whose small gradients would underflow to zero (Micikevicius et al. 2018). The loss is
// multiplied by a scale before the backward pass, and the gradients are divided by the scale afterwards. If the gradients
// overflow, the step is skipped. But if the scale is already 1, it cannot be the cause, and the overflow is an error of
// the run.
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
  // Takes whether the step's gradients overflowed; returns whether to skip the step.
  bool overflowed(bool overflow) {
    if (!dynamic || (overflow && scale <= 1)) return false;  // at 1 the scale is not the cause
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
