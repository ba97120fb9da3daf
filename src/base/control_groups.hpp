// Finds the control groups of this process (cgroup, version 1 or 2). Containers and batch systems limit memory and processor
// time through them. A limit of a group also holds for the groups inside it.
//
//   /sys/fs/cgroup          /job             /job/step         folders whose files have the limits
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

struct ControlGroup {
  std::filesystem::path folder;
  bool is_version_2 = false;
};

// Returns the groups that have this controller ("memory", "cpu"), from the mounted top to the group of this process. A
// container sees only its own group and the groups inside it. `root` is prepended to every path that is read.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

}  // namespace chorale
