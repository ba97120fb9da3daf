// The grid of a layout's ranks: the coordinates of a rank, and the groups of ranks that differ only on some axes. This file
// contains only arithmetic on rank numbers. The mesh (mesh/mesh.hpp) opens a communicator for each group.
//
//   dp2.tp2.pp2     rank = (stage · 2 + replica) · 2 + shard         the innermost axis varies fastest
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/layout/layout.hpp"

namespace chorale {

// A rank's coordinate on each axis; the index is the axis's row in the table of axes.hpp.
using Coordinates = std::array<std::int64_t, most_axes>;
Coordinates coordinates_of(const Layout& layout, std::int64_t rank);
// A group of two or more ranks in the mesh of a layout. `chosen_as`: the axis whose backend and algorithm the group uses.
// For a group along several axes, `chosen_as` is the axis with the smallest default depth, because the ranks along that axis
// are the furthest apart.
struct RankGroup {
  std::string name, chosen_as;
  std::vector<int> ranks;  // in the order of the group
};
std::vector<RankGroup> groups_of(const Layout& layout);
// Returns the rank that holds a stage in the first replica. `last_shard` selects the last tensor-parallel rank instead of
// the first, because the last shard can be larger. `context_rank` selects the rank along cp.
int rank_of_stage(const Layout& layout, std::int64_t stage, bool last_shard = false, std::int64_t context_rank = 0);
std::int64_t stage_of(const Layout& layout, std::int64_t rank);         // the pipeline stage of a rank
std::int64_t context_rank_of(const Layout& layout, std::int64_t rank);  // a rank's index along cp
// The stages that hold the model's first and last part; one entry if both parts are on the same stage.
std::vector<std::int64_t> end_stages(const Layout& layout);
// Returns the cp coordinates of all ranks in a group. The group contains `rank` and extends along the axis in row `row` of
// the table.
std::vector<std::int64_t> context_ranks_along(const Layout& layout, std::int64_t rank, std::size_t row);

// A group from the view of one of its ranks. The group can consist of this rank only.
struct GroupOfRank {
  std::string name, chosen_as;
  AxisSet set;  // the axes in which the group's ranks differ; 0 for the group of end_stages()
  // This rank's index in the group; the group's size; and the group's index among all groups of the same set.
  std::int64_t rank, size, group;
};
// All groups of a rank: a group for each axis, the end stages ("ends"), all ranks ("world"), and a group for each set of
// several axes.
std::vector<GroupOfRank> groups_of_rank(const Layout& layout, std::int64_t rank);
std::vector<int> ranks_of(const GroupOfRank& group, const Layout& layout, std::int64_t rank);  // in the order of the group

}  // namespace chorale
