#include "parallel/plan/snapshots.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/keeper/kept.hpp"

namespace chorale {
namespace {

std::set<int> typical_ranks(const PlanRequest& request) {
  const Layout& layout = request.layout;
  std::set<int> ranks, hosts;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    for (const bool last : {false, true}) ranks.insert(rank_of_stage(layout, stage, last));
  if (request.hosts.empty()) return ranks;
  for (const int rank : ranks) hosts.insert(request.hosts[static_cast<std::size_t>(rank)]);
  for (int rank = 0; rank < layout.ranks(); ++rank)
    if (hosts.contains(request.hosts[static_cast<std::size_t>(rank)])) ranks.insert(rank);
  return ranks;
}

}  // namespace

PlannedSnapshots plan_snapshots(const PlanRequest& request, std::int64_t most) {
  PlannedSnapshots plan{.is_exact = request.layout.ranks() <= most};
  std::set<int> ranks;
  if (plan.is_exact)
    for (int rank = 0; rank < request.layout.ranks(); ++rank) ranks.insert(rank);
  else
    ranks = typical_ranks(request);
  std::map<int, std::int64_t> bytes_of_host;
  for (const int rank : ranks) {
    const std::int64_t bytes = planned_to_save(request, rank);
    if (bytes > plan.bytes) {
      plan.fullest = rank;
      plan.bytes = bytes;
    }
    bytes_of_host[request.hosts.empty() ? 0 : request.hosts[static_cast<std::size_t>(rank)]] += bytes;
  }
  if (!plan.is_exact && request.hosts.empty()) return plan;
  for (const auto& [host, bytes] : bytes_of_host) plan.host_bytes = std::max(plan.host_bytes, kept_generations * bytes);
  return plan;
}

}  // namespace chorale
