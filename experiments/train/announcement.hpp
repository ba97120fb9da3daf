// What a training run says and records before its first step: the model, the batch, the memory of activations.
#pragma once
#include "experiments/run_record.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/team.hpp"

namespace chorale::train {

// On rank 0.
void announce(RunRecord& run, const Team& team, Training& training, const Dataset& data, std::int64_t steps);

}  // namespace chorale::train
