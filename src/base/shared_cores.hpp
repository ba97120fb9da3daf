// Tells whether ranks share cores. A rank that has a core for itself can spin while it waits. A rank that shares its core
// must give it away, because it may be waiting for a rank that needs this core.
//
//   2 ranks, both may use cores 0 and 1              each has a core
//   4 ranks, bound by twos to core 0 and to core 1   all share
//   2 hosts that are emulated on one machine         their ranks share cores
//   docker run --cpus 2, with 4 ranks                all share: Linux stops the container for the rest of each period of
//                                                    100 ms once its ranks have used their time, also by spinning
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace chorale {

// How many cores' worth of time this process may use, together with the other processes of a control group. Infinite if
// there is no limit.
struct CpuQuota {
  double cores;
  std::filesystem::path group;
};
// Returns the smallest limit of this process's control groups. `root` is prepended to every path that is read.
CpuQuota cpu_quota(const std::filesystem::path& root = "/");

// Returns the numbers that all ranks pass. Collective.
using Exchange = std::function<std::vector<std::int64_t>(std::int64_t)>;

// Collective. Whether more ranks use this rank's set of cores than it has cores, or more ranks are in its control group than
// the group's limit allows cores. Sets that overlap in part are counted as if they were apart: launchers bind each rank to
// its own cores, or none.
bool shares_cores(const Exchange& exchange, const CpuQuota& quota = cpu_quota());

}  // namespace chorale
