// The learning rate of each step. The rate starts with a linear or logarithmic warm-up from `first` to the peak. One of
// these decays follows:
//
//   constant      linear ╲     cosine ⌒╲       wsd ‾‾‾‾╲   (warm-up, stable, decay: Hu et al. 2024)
//
// Alternatively, the rate follows one of DeepSpeed's schedulers, with DeepSpeed's name and exact formula
// (deepspeed_rate.cpp).
#pragma once
#include <chorale/optimizer.hpp>

namespace chorale {

bool is_deepspeed_scheduler(RateDecay decay);
double deepspeed_rate(const LearningRate& rate, std::int64_t step);

}  // namespace chorale
