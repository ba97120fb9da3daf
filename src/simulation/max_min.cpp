#include "src/simulation/max_min.hpp"

#include <algorithm>
#include <map>

#include "src/base/index.hpp"

namespace chorale {
namespace {

void share(std::vector<Activity>& activities, const std::vector<double>& capacities) {
  // For each resource, `open` counts the parts that have no rate yet, and `settled` counts the parts of each rate. Only
  // integers are added, so the order of the activities does not affect the result.
  std::vector<std::int64_t> open(capacities.size());
  std::vector<std::map<double, std::int64_t>> settled(open.size());
  std::vector<Activity*> rest;
  for (Activity& activity : activities) {
    rest.push_back(&activity);
    for (const ResourceUse& use : activity.uses) open[index(use.resource)] += use.parts;
  }
  const auto room = [&](std::size_t resource) {  // what is left for each open part
    double used = 0;
    for (const auto& [rate, parts] : settled[resource]) used += rate * static_cast<double>(parts);
    return open[resource] > 0 ? std::max(0.0, capacities[resource] - used) / static_cast<double>(open[resource]) : forever;
  };
  while (!rest.empty()) {
    double rate = forever;
    std::vector<double> rooms;
    for (std::size_t resource = 0; resource < open.size(); ++resource) {
      rooms.push_back(room(resource));
      rate = std::min(rate, rooms.back());
    }
    for (const Activity* activity : rest) rate = std::min(rate, activity->limit);
    const auto is_full = [&](const ResourceUse& use) { return rooms[index(use.resource)] <= rate; };
    std::vector<Activity*> others;
    for (Activity* activity : rest) {
      if (activity->limit > rate && std::ranges::none_of(activity->uses, is_full)) {
        others.push_back(activity);
        continue;
      }
      activity->rate = rate;
      for (const ResourceUse& use : activity->uses) {
        open[index(use.resource)] -= use.parts;
        settled[index(use.resource)][rate] += use.parts;
      }
    }
    rest = std::move(others);
  }
}

}  // namespace

Sharing max_min(std::vector<double> capacities) {
  return [capacities = std::move(capacities)](std::vector<Activity>& activities) { share(activities, capacities); };
}

}  // namespace chorale
