// From a training run to what a checkpoint holds, and back.
#pragma once
#include "parallel/state/checkpoint.hpp"
#include "parallel/training.hpp"

namespace chorale {

std::vector<StateTensor> state_of(Training& training);       // all that this rank owns, to be read
std::vector<StateTensor> gradients_of(Training& training);   // of the newest step, summed over ranks; "gradient/norm.gain"
std::vector<StateTensor> state_to_save(Training& training);  // of state_of, what is no copy
Peers peers_of(const Mesh& mesh);
Metadata metadata_of(Training& training, const std::string& config);
void resume(Training& training, const Checkpoint& checkpoint);  // a usage error if it is of another model or other numerics

}  // namespace chorale
