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
#include <string>
#include <vector>

namespace chorale {

// Collective. Whether more ranks use this rank's set of cores than it has cores, or more ranks than its control group allows
// cores. Sets that overlap in part are counted as if they were apart: launchers bind each rank to its own cores, or none.
// `exchange` returns the numbers that all ranks passed.
bool shares_cores(const std::function<std::vector<std::int64_t>(std::int64_t)>& exchange);

// Returns how many cores' worth of time this process may use, together with the other processes of its control groups.
// Infinite if there is no limit. The limit of a group also holds for the groups inside it, so the result is the smallest
// limit on the way up to the root.
double cpu_quota();

// The same for the text of /proc/self/cgroup and the mounted control groups in the folder `root`.
double cpu_quota(const std::string& membership, const std::filesystem::path& root);

}  // namespace chorale
