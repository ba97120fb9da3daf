// Several groups of ranks that make the same call at the same time. Their schedules are joined to one list, which can be
// predicted like the schedules of a single call. So the groups share the cores and links of their ranks.
//
//   group 0   ranks 0 1     schedules of one call ──┐
//   group 1   ranks 2 3     the same, renumbered ───┴─▶ schedules of ranks 0 to 3
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct SideBySide {
  std::vector<std::vector<int>>
      groups;                   // the ranks of each group; every rank is in one group, and all groups are equally large
  std::vector<int> hosts = {};  // the host of each rank of all groups; empty if all are on one host

  std::size_t ranks() const { return groups.empty() ? 0 : groups.size() * groups[0].size(); }
  Problem whole(Problem of_group) const;  // the same call with the ranks and hosts of all groups
};

// `call`: the schedules of one group. In the result, peers are numbered among the ranks of all groups. The Problem of a
// schedule remains the problem within its group.
std::vector<Schedule> side_by_side(const std::vector<Schedule>& call, const SideBySide& all);

}  // namespace chorale
