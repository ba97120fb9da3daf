// Computes how many more bytes this process can allocate before the kernel's out-of-memory killer acts. The result is the
// minimum of the machine's free memory and the free memory of each control group (cgroup, version 1 or 2) of the process.
// Containers and Slurm limit memory through control groups; /proc/meminfo does not show these limits.
//
//   the machine      MemAvailable of /proc/meminfo          17.1 GiB
//   /job             limit − use + file pages in use         7.5 GiB
//   /job/step        no limit                                   –          → 7.5 GiB
//
// The memory usage of a control group includes cached file pages, which the kernel drops when it needs memory.
#pragma once
#include <cstdint>
#include <filesystem>

namespace chorale {

// `root` is prepended to every path that is read, so that a test can provide its own files.
std::int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace chorale
