// One number for each tensor of a training's state, the same on every layout that holds the same bits: a sum over its elements of a hash of
// the global place and the bits. Sums have no order, so each rank adds up what it owns. A copy that another rank has of it (a replica's, a
// tensor rank's, the last stage's tied table) has a number of its own where it differs: "norm.gain@dp1", which is on no layout that is right.
#pragma once
#include <map>

#include "parallel/training.hpp"

namespace chorale {

// By name: weights, moments. Collective; all ranks get it.
std::map<std::string, std::uint64_t> fingerprint(Training& training);
// The same of the newest step's gradients, "gradient/norm.gain", which no clipping and no optimizer has touched: they tell which sum went wrong.
std::map<std::string, std::uint64_t> gradient_fingerprint(Training& training);

}  // namespace chorale
