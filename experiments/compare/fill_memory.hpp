// Compares layouts at equal memory. Each training run of a suite gets the largest micro-batch with which every rank's
// planned memory stays within the limit (`fill-memory`). The batch of a step stays the same, so all runs train on the same
// batches.
//
//   batch 64, 2 GiB     dp4         micro-batch 4     the largest that fits and divides a replica's share
//                       dp4.z3      micro-batch 16    its states are sharded, so more memory is left for activations
//                       pp4         micro-batch 16    64 would fit, but a pipeline needs one micro-batch per stage
#pragma once
#include "experiments/compare/suite.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// Sets micro-batch-size and memory-limit of every training run, except simulated runs. If a micro-batch of one sequence is
// already too large for a run, the run keeps this size, and the run's row reports the missing memory.
void fill_memory(Suite& suite, const std::filesystem::path& parent, const Launch& launch, std::vector<Mistake>& mistakes);

}  // namespace chorale::compare
