// One number per state tensor, equal on every layout that holds the same bits. It is the sum over all elements of a hash of
// the element's global place and its bits. Sums do not depend on order, so each rank adds what it owns. A copy on another
// rank (on a replica, a tensor rank, or as the last stage's tied table) gets its own entry if it differs: "norm.gain@dp1".
// Such an entry exists only if something is wrong.
#pragma once
#include <map>

#include "parallel/training.hpp"

namespace chorale {

// Collective. Fingerprints of weights and moments, by name.
std::map<std::string, std::uint64_t> fingerprint(Training& training);
// Collective. The same for the newest step's gradients before clipping, as "gradient/norm.gain". They show which sum is
// wrong.
std::map<std::string, std::uint64_t> gradient_fingerprint(Training& training);

}  // namespace chorale
