// Cuts a list of layers into consecutive parts for pipeline stages, by cost. In a small model the head costs almost as much
// as a layer, so equal numbers of layers seldom mean equal load.
//
//   split_layers({1, 1, 1, 1, 2}, 3)  →  {2, 2, 1}
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace chorale {

// The number of layers in each part, at least one. The slowest stage sets the pace, so the most expensive part is as cheap
// as possible. Among such cuts, the parts are as even as possible, and later parts get the surplus, because the first
// stages keep the most activations. O(layers² · parts).
std::vector<std::int64_t> split_layers(std::span<const double> costs, std::int64_t parts);

}  // namespace chorale
