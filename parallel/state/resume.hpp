// Converts the state of a training run to the contents of a checkpoint, and back.
#pragma once
#include "parallel/state/checkpoint.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

std::vector<StateTensor> state_of(Training& training);       // this rank's weights and moments, including copies
std::vector<StateTensor> gradients_of(Training& training);   // the newest step's gradient sums, named "gradient/norm.gain"
std::vector<StateTensor> state_to_save(Training& training);  // like state_of, but without copies
Peers peers_of(const Mesh& mesh);
Metadata metadata_of(Training& training, const std::string& config);
void resume(Training& training, const Checkpoint& checkpoint);  // throws a usage error if the model, numerics or seed differ

}  // namespace chorale
