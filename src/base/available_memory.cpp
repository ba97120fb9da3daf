#include "src/base/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "src/base/control_groups.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

// File names in a control group's folder, by version.
struct Version {
  std::string limit, use;
  std::string prefix;  // prefix of the entries in memory.stat that include all descendant groups
};
const Version version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"};
const Version version_2{"memory.max", "memory.current", ""};

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

}  // namespace

std::int64_t available_memory(const fs::path& root) {
  const std::int64_t kibibytes = entry_of(root / "proc/meminfo", "MemAvailable:");
  std::int64_t least = kibibytes > 0 ? kibibytes * 1024 : memory_bytes();
  for (const ControlGroup& group : control_groups("memory", root))
    least = std::min(least, left_in(group.folder, group.is_version_2 ? version_2 : version_1));
  return least;
}

}  // namespace chorale
