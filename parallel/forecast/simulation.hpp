// How long a step takes, simulated from the scripts of all ranks (script.hpp). Ranks that compute on one machine share its
// cores; calls at the same time share the links of their hosts.
//
//   rank 0   work ───────┤ begin ├ work ─────┤ wait ·······┤
//   rank 1   work ────────────┤ begin ├ work ───┤ wait ····┤
//   call                              ├──────────┬─────────┤      runs from the last begin on
//
//   cores    3 ranks compute on 2 cores: each gets 2/3 of a core
//   links    2 calls use the link of a host: each moves at half its speed
//
// A call between ranks of one host is work of these ranks, and takes part in the sharing of cores. A call between hosts
// needs its ranks' cores whenever its link is not busy (Script::Call::link). Both go on while their ranks compute. While a
// call to another host needs a rank's core, this rank's own work gets half of it.
#pragma once
#include <vector>

#include "collectives/forecast/work.hpp"
#include "parallel/mesh/mesh.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

using Speeds = std::array<double, kinds_of_work>;  // of one core, by Work: flops or bytes per second

struct StepTime {
  double seconds = 0;
  std::vector<double> computes;  // by rank: seconds of the step in which it computes
};

// `scripts`: by rank; `groups`: of the layout. All calls must have a price.
StepTime simulate(const std::vector<const Script*>& scripts, const std::vector<RankGroup>& groups,
                  const forecast::Site& site, const Speeds& speeds);

}  // namespace chorale
