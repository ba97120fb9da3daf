// Divides a list of layers into consecutive parts of similar cost, for pipeline stages. In a small model the head costs
// almost as much as a layer, so equal numbers of layers seldom mean equal load.
//
//   split_layers({1, 1, 1, 1, 2}, 3)  →  {2, 2, 1}
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace chorale {

// Returns the number of layers in each part, which is at least one. The slowest stage determines the speed, so the partition
// minimizes the cost of the most expensive part. Among the partitions with this minimum, it divides costs as evenly as
// possible. Later parts get the surplus layers, because the first stages keep the most activations. O(layers² · parts).
std::vector<std::int64_t> split_layers(std::span<const double> costs, std::int64_t parts);

}  // namespace chorale
