#include "src/base/shared_cores.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include "src/base/control_groups.hpp"
#include "src/base/host.hpp"

namespace chorale {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// `quota` and `period` are in microseconds. If there is no limit, the quota is "max" (version 2 of control groups) or −1
// (version 1).
double cores(const std::string& quota, const std::string& period) {
  const double share = std::atof(quota.c_str()), of = std::atof(period.c_str());
  return share > 0 && of > 0 ? share / of : no_limit;
}

double limit_of(const ControlGroup& group) {
  const auto line_of = [&](const char* file) { return first_line((group.folder / file).string()); };
  if (!group.is_version_2) return cores(line_of("cpu.cfs_quota_us"), line_of("cpu.cfs_period_us"));
  std::istringstream both(line_of("cpu.max"));
  std::string quota, period;
  both >> quota >> period;
  return cores(quota, period);
}

}  // namespace

bool shares_cores(const Exchange& exchange, const CpuQuota& quota) {
  const auto ranks_with_equal = [&](const std::string& text) {
    const auto mine = static_cast<std::int64_t>(std::hash<std::string>{}(kernel_id() + text));
    return static_cast<double>(std::ranges::count(exchange(mine), mine));
  };
  const std::vector<int> cores = allowed_cpus();
  std::error_code ignored;  // the name space tells groups of two containers apart, which have the same path in both
  const std::string name_space = std::filesystem::read_symlink("/proc/self/ns/cgroup", ignored).string();
  const double ranks_on_cores = ranks_with_equal(cpu_ranges(cores)),
               ranks_in_group = ranks_with_equal(name_space + quota.group.string());
  return ranks_on_cores > static_cast<double>(cores.size()) || ranks_in_group > quota.cores;
}

CpuQuota cpu_quota(const std::filesystem::path& root) {
  CpuQuota least{no_limit, ""};
  for (const ControlGroup& group : control_groups("cpu", root))
    if (const double limit = limit_of(group); limit < least.cores) least = {limit, group.folder};
  return least;
}

}  // namespace chorale
