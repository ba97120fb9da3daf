#include "collectives/schedule/side_by_side.hpp"

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {

Problem SideBySide::whole(Problem of_group) const {
  of_group.size = static_cast<int>(ranks());
  of_group.hosts = hosts_among(hosts);
  return of_group;
}

std::vector<Schedule> side_by_side(const std::vector<Schedule>& call, const SideBySide& all) {
  std::vector<const Schedule*> of_rank(all.ranks(), nullptr);
  std::vector<const std::vector<int>*> group_of(all.ranks(), nullptr);
  for (const std::vector<int>& group : all.groups) {
    require(group.size() == call.size(), "a call of {} ranks does not fit a group of {}", call.size(), group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      of_rank.at(index(group[i])) = &call[i];
      group_of[index(group[i])] = &group;
    }
  }
  std::vector<Schedule> schedules;
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    require(of_rank[rank] != nullptr, "rank {} is in no group", rank);
    schedules.push_back(*of_rank[rank]);
    for (Step& step : schedules.back().steps)
      for (int& peer : step.peers) peer = (*group_of[rank])[index(peer)];
  }
  return schedules;
}

}  // namespace chorale
