// Converts the state of a training run to the contents of a checkpoint, and back.
#pragma once
#include "parallel/state/checkpoint.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

std::vector<StateTensor> state_of(Training& training);       // the optimizer's weights and moments on this rank, copies too
std::vector<StateTensor> gradients_of(Training& training);   // the newest step's gradient sums, named "gradient/norm.gain"
std::vector<StateTensor> state_to_save(Training& training);  // state_of without copies
Peers peers_of(const Mesh& mesh);
Metadata metadata_of(Training& training, const std::string& config);
void resume(Training& training, const Checkpoint& checkpoint);  // a usage error for another model, numerics or seed

}  // namespace chorale
