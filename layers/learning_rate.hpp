// The learning rate of each step: a linear warm-up to the peak, then one of
//
//   constant      linear ╲     cosine ⌒╲       wsd ‾‾‾‾╲   (warm-up, stable, decay: Hu et al. 2024)
#pragma once
#include <cstdint>
#include <string>

namespace chorale {

struct LearningRate {
  std::string decay = "cosine";  // constant, linear, cosine, wsd
  double peak = 1e-3, minimum = 1e-4;
  std::int64_t warmup = 0, steps = 1;  // steps: of the whole run
  double wsd_share = 0.2;              // of the run, at its end, in which wsd decays

  double at(std::int64_t step) const;  // steps count from 0
};

}  // namespace chorale
