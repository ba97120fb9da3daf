// How many bytes more this machine can give a process before the kernel ends one: the least of what the machine has left and what every
// control group (cgroup, version 1 or 2) around the process has left, from its own up to the root. Containers and Slurm limit memory by such
// groups, which /proc/meminfo knows nothing of.
//
//   the machine      MemAvailable of /proc/meminfo          17.1 GiB
//   /job             limit − use + file pages in use         7.5 GiB
//   /job/step        no limit                                   –          → 7.5 GiB
//
// A group's use counts the file pages it has read, which the kernel drops when it needs room.
#pragma once
#include <cstdint>
#include <filesystem>

namespace chorale {

// `root` stands before every path that is read; a test puts a folder of its own there.
std::int64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace chorale
