#include "parallel/planner/links.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace chorale {

void share(std::vector<LinkFlow>& flows, const std::vector<double>& capacities) {
  // For each link, `open` counts the connections that have no rate yet, and `settled` counts the connections of each rate.
  // Only integers are added, so the order of the flows does not affect the result.
  std::vector<std::int64_t> open(capacities.size());
  std::vector<std::map<double, std::int64_t>> settled(open.size());
  std::vector<LinkFlow*> rest;
  for (LinkFlow& flow : flows) {
    rest.push_back(&flow);
    for (const LinkUse& use : flow.uses) open[static_cast<std::size_t>(use.link)] += use.connections;
  }
  const auto room = [&](std::size_t link) {  // the remaining rate per open connection
    double used = 0;
    for (const auto& [rate, connections] : settled[link]) used += rate * static_cast<double>(connections);
    return open[link] > 0 ? std::max(0.0, capacities[link] - used) / static_cast<double>(open[link])
                          : std::numeric_limits<double>::infinity();
  };
  while (!rest.empty()) {
    double rate = std::numeric_limits<double>::infinity();
    std::vector<double> rooms;
    for (std::size_t link = 0; link < open.size(); ++link) {
      rooms.push_back(room(link));
      rate = std::min(rate, rooms.back());
    }
    for (const LinkFlow* flow : rest) rate = std::min(rate, flow->limit);
    const auto is_full = [&](const LinkUse& use) { return rooms[static_cast<std::size_t>(use.link)] <= rate; };
    std::vector<LinkFlow*> others, now;
    for (LinkFlow* flow : rest)
      (flow->limit <= rate || std::ranges::any_of(flow->uses, is_full) ? now : others).push_back(flow);
    for (LinkFlow* flow : now) {
      flow->rate = rate;
      for (const LinkUse& use : flow->uses) {
        open[static_cast<std::size_t>(use.link)] -= use.connections;
        settled[static_cast<std::size_t>(use.link)][rate] += use.connections;
      }
    }
    rest = std::move(others);
  }
}

}  // namespace chorale
