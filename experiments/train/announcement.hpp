// Before the first step of a training run, logs and records facts about the run: its model, its batch, and the memory that
// its activations need.
#pragma once
#include "experiments/common/run_record.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/team.hpp"

namespace chorale::train {

// Called on rank 0.
void announce(RunRecord& run, const TrainingTeam& team, Training& training, const Dataset& data, std::int64_t steps);

}  // namespace chorale::train
