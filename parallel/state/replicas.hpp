// Compares the copies of weights, moments and values that several ranks hold. All copies must be bit-identical. If a bit
// flips in one rank's memory, the copies never become equal again by themselves.
//
//   dp4   rank 0  hash a     rank 1  hash a     rank 2  hash b     rank 3  hash a     → rank 2 is wrong
//
// If there are only two copies, it is unknown which of the two is wrong. State that only one rank holds, such as a ZeRO
// shard, cannot be compared.
//
// In fast numerics, tensor-parallel ranks can round differently. So only ranks that sum gradients in the same group are
// compared.
//
// Each rank hashes its state on one core and sends one line of text per tensor to all ranks.
#pragma once
#include "parallel/step/training.hpp"

namespace chorale {

// Collective. Throws on all ranks if copies differ, and names the tensor and the ranks.
void require_equal_replicas(Training& training);

}  // namespace chorale
