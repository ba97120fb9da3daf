#include "src/base/control_groups.hpp"

#include <algorithm>
#include <fstream>

#include "src/base/text.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

// Whether a hierarchy has the controller. In version 1, a hierarchy has one or several controllers: "rw,cpu,cpuacct". In
// version 2, one hierarchy has all.
bool has(const std::string& controller, const std::string& controllers, bool is_version_2) {
  const std::vector<std::string> names = split(controllers, ',');
  return is_version_2 || std::ranges::count(names, controller) > 0;
}

// Returns the group of this process in a hierarchy, from a line of /proc/self/cgroup: "4:memory:/job/step", or
// "0::/job/step" in version 2.
std::string group_of_process(const std::string& controller, const fs::path& root, bool is_version_2) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() == is_version_2 && has(controller, controllers, is_version_2)) return line.substr(second + 1);
  }
  return "/";
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<ControlGroup> groups;
  std::ifstream mounts(root / "proc/self/mountinfo");
  // A line: "35 31 0:32 /docker/7f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". The fourth field is the mounted
  // control group.
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> before = split(line.substr(0, dash), ' '), after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool is_version_2 = after[0] == "cgroup2";
    if ((!is_version_2 && after[0] != "cgroup") || !has(controller, after[2], is_version_2)) continue;
    fs::path group = root / fs::path(before[4]).relative_path();
    fs::path below = fs::path(group_of_process(controller, root, is_version_2)).lexically_relative(before[3]);
    if (below.empty() || *below.begin() == "..")
      below = ".";  // the group is outside the mount, so only the root of the mount can be read
    groups.push_back({group, is_version_2});
    for (const fs::path& part : below) groups.push_back({group /= part, is_version_2});
  }
  return groups;
}

}  // namespace chorale
