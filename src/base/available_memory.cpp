#include "src/base/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

// File names in a control group's folder, by cgroup version.
struct Version {
  std::string file_system, limit, use;
  std::string prefix;  // prefix of the entries in memory.stat that include all descendant groups
};
const Version versions[] = {{"cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
                            {"cgroup2", "memory.max", "memory.current", ""}};

// Returns the number in a file, or nothing if the file contains "max" or does not exist.
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::int64_t value = 0;
  return std::ifstream(file) >> value ? std::optional(value) : std::nullopt;
}

// Returns the value for `name` in a file of "name value" lines. In some files, a colon follows the name.
std::int64_t entry_of(const fs::path& file, const std::string& name) {
  std::ifstream stream(file);
  for (std::string word; stream >> word;) {
    std::int64_t value = 0;
    if (word == name) return stream >> value ? value : 0;
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

std::int64_t left_in(const fs::path& group, const Version& names) {
  const auto limit = number_in(group / names.limit), use = number_in(group / names.use);
  if (!limit || !use) return unlimited;
  const fs::path stat = group / "memory.stat";
  const std::int64_t files = entry_of(stat, names.prefix + "inactive_file") + entry_of(stat, names.prefix + "active_file");
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *use - files));
}

// Whether a hierarchy has the memory controller. In version 1, a hierarchy has one or several controllers: "rw,cpu,cpuacct".
bool has_memory(const Version& version, const std::string& controllers) {
  const std::vector<std::string> names = split(controllers, ',');
  return version.file_system == "cgroup2" || std::find(names.begin(), names.end(), "memory") != names.end();
}

// Returns the group of this process in a hierarchy, from a line of /proc/self/cgroup: "4:memory:/job/step", or
// "0::/job/step" in version 2.
std::string group_of_process(const fs::path& root, const Version& version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() == (version.file_system == "cgroup2") && has_memory(version, controllers))
      return line.substr(second + 1);
  }
  return "/";
}

// Reads a line of /proc/self/mountinfo: "35 31 0:32 /docker/7f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory". The
// fourth field is the mounted control group. A container sees only its own control group.
std::int64_t left_in_mount(const fs::path& root, const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return unlimited;
  const std::vector<std::string> before = split(line.substr(0, dash), ' '), after = split(line.substr(dash + 3), ' ');
  if (before.size() < 5 || after.size() < 3) return unlimited;
  const auto* const version = std::find_if(std::begin(versions), std::end(versions), [&](const Version& v) {
    return v.file_system == after[0] && has_memory(v, after[2]);
  });
  if (version == std::end(versions)) return unlimited;

  const fs::path top = root / fs::path(before[4]).relative_path();
  fs::path below = fs::path(group_of_process(root, *version)).lexically_relative(before[3]);
  if (below.empty() || *below.begin() == "..")
    below = ".";  // the group is outside the mount, so only the root of the mount can be read
  std::int64_t least = left_in(top, *version);
  fs::path group = top;
  for (const fs::path& part : below) least = std::min(least, left_in(group /= part, *version));
  return least;
}

}  // namespace

std::int64_t available_memory(const fs::path& root) {
  const std::int64_t kibibytes = entry_of(root / "proc/meminfo", "MemAvailable:");
  std::int64_t least = kibibytes > 0 ? kibibytes * 1024 : memory_bytes();
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) least = std::min(least, left_in_mount(root, line));
  return least;
}

}  // namespace chorale
