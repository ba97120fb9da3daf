// DeepSpeed's learning-rate schedulers, with DeepSpeed's names and exact formulas. chorale/optimizer.hpp has all schedules.
#pragma once
#include <chorale/optimizer.hpp>

namespace chorale {

bool is_deepspeed_scheduler(RateDecay decay);
double deepspeed_rate(const LearningRate& rate, std::int64_t step);

}  // namespace chorale
