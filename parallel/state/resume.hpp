// From a training run to the contents of a checkpoint, and back.
#pragma once
#include "parallel/state/checkpoint.hpp"
#include "parallel/training.hpp"

namespace chorale {

std::vector<StateTensor> state_of(Training& training);       // all state that this rank owns, copies included
std::vector<StateTensor> gradients_of(Training& training);   // of the newest step, summed over ranks; "gradient/norm.gain"
std::vector<StateTensor> state_to_save(Training& training);  // state_of without copies
Peers peers_of(const Mesh& mesh);
Metadata metadata_of(Training& training, const std::string& config);
void resume(Training& training, const Checkpoint& checkpoint);  // a usage error for another model, numerics or seed

}  // namespace chorale
