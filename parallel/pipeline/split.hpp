// Cuts a list of layers into consecutive parts for the stages of a pipeline, by what they cost: the head of a small model weighs most of a
// layer, so equal numbers of layers are seldom equal work.
//
//   split_layers({1, 1, 1, 1, 2}, 3)  →  {2, 2, 1}
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace chorale {

// How many layers each part has, at least one. The greatest part is as small as can be, for the slowest stage sets the pace; among the
// cuts that reach this, the parts are as even as can be, and what is left over goes to the end, as the first stages of a pipeline keep
// the most activations. O(layers² · parts).
std::vector<std::int64_t> split_layers(std::span<const double> costs, std::int64_t parts);

}  // namespace chorale
