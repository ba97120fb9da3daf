// Compares the copies of weights, moments and values that several ranks hold. All copies must have the same bits; a bit that
// has flipped in one rank's memory never becomes equal again by itself.
//
//   dp4   rank 0  hash a     rank 1  hash a     rank 2  hash b     rank 3  hash a     → rank 2 is wrong
//
// Two copies show that they differ, but not which of them is wrong. State that only one rank holds, such as a shard of ZeRO,
// cannot be compared.
//
// In fast numerics, tensor-parallel ranks may round differently, so only ranks that sum gradients in the same group are
// compared.
//
// Cost: each rank hashes its state on one core, and sends a line per tensor to all ranks.
#pragma once
#include "parallel/step/training.hpp"

namespace chorale {

// Collective. Throws on all ranks if copies differ, and names the tensor and the ranks.
void require_equal_replicas(Training& training);

}  // namespace chorale
