// A fingerprint is one number per state tensor (a weight or a moment of the optimizer). Bit-identical tensors have the same
// fingerprint on every layout. Each element's bits are hashed together with its index in the full tensor, and the
// fingerprint is the sum of these hashes. Integer sums do not depend on order, so each rank adds the hashes of the elements
// that it owns.
//
// Several ranks can hold copies of a tensor: replicas, tensor-parallel ranks, and the first and last stages with a tied
// table. If a copy is not bit-identical to the owner's tensor, the copy gets a separate entry, such as "norm.gain@dp1".
#pragma once
#include <map>

#include "parallel/state/parts.hpp"
#include "parallel/step/training.hpp"

namespace chorale {

// The sum of the hashes of a part's elements. Each hash covers the element's bits and its index in the full tensor.
std::uint64_t hash_of(const StateTensor& part);

// Collective. Fingerprints of weights and moments, by name.
std::map<std::string, std::uint64_t> fingerprint(Training& training);
// Fingerprints of the newest step's gradients before clipping, by names such as "gradient/norm.gain". All ranks must call
// this function. Differing fingerprints show which gradient sum is wrong. With experts, "choices" is the fingerprint of the
// choice counts.
std::map<std::string, std::uint64_t> gradient_fingerprint(Training& training);

}  // namespace chorale
