// Simulates how long a step takes, from the scripts of all ranks (script.hpp). Ranks that compute on one machine share its
// cores, and concurrent calls share the links of their hosts.
//
//   rank 0   work ───────┤ begin ├ work ─────┤ wait ·······┤
//   rank 1   work ────────────┤ begin ├ work ───┤ wait ····┤
//   call                              ├──────────┬─────────┤      runs once the last rank has begun it
//
//   cores    3 ranks compute on 2 cores: each gets 2/3 of a core
//   links    2 calls use the link of a host: each runs at half its speed
//
// A call between ranks of one host counts as work of these ranks, so it shares their cores. A call between hosts needs its
// ranks' cores whenever its link is not busy (Script::Call::link). Calls within a host and calls between hosts progress
// while their ranks compute. While a call to a different host needs a rank's core, the rank's own work gets half of that
// core.
#pragma once
#include <vector>

#include "collectives/prediction/work.hpp"
#include "parallel/mesh/mesh.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

using Speeds = std::array<double, kinds_of_work>;  // the speed of one core for each Work, in flops or bytes per second

struct StepTime {
  double seconds = 0;
  std::vector<double> computes;  // for each rank, the time in seconds during which the rank computes
};

// `scripts`: the script of each rank. `groups`: the groups of the layout. All calls must have a price.
StepTime simulate(const std::vector<const Script*>& scripts, const std::vector<RankGroup>& groups,
                  const prediction::Site& site, const Speeds& speeds);

}  // namespace chorale
