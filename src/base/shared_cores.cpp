#include "src/base/shared_cores.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// `quota` and `period` are in microseconds. If there is no limit, the quota is "max" (version 2 of control groups) or −1
// (version 1).
double cores(const std::string& quota, const std::string& period) {
  const double share = std::atof(quota.c_str()), of = std::atof(period.c_str());
  return share > 0 && of > 0 ? share / of : no_limit;
}

double limit_of(const std::filesystem::path& group) {
  std::istringstream both(first_line((group / "cpu.max").string()));
  std::string quota, period;
  both >> quota >> period;
  return std::min(cores(quota, period), cores(first_line((group / "cpu.cfs_quota_us").string()),
                                              first_line((group / "cpu.cfs_period_us").string())));
}

}  // namespace

double cpu_quota(const std::string& membership, const std::filesystem::path& root) {
  double least = no_limit;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" (version 2) or "4:cpu,cpuacct:/a/b" (version 1)
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool has_cpu = ("," + controllers + ",").find(",cpu,") != std::string::npos;
    if (!controllers.empty() && !has_cpu) continue;
    const std::filesystem::path top = controllers.empty() ? root : root / controllers;
    // Inside a container, the path can be the one outside, which does not exist here. The container's own group is then
    // the top.
    std::filesystem::path below = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (; !below.empty(); below = below.parent_path()) least = std::min(least, limit_of(top / below));
    least = std::min(least, limit_of(top));
  }
  return least;
}

bool shares_cores(const std::function<std::vector<std::int64_t>(std::int64_t)>& exchange) {
  const auto ranks_with_equal = [&](const std::string& text) {
    const auto mine = static_cast<std::int64_t>(std::hash<std::string>{}(text));
    return static_cast<double>(std::ranges::count(exchange(mine), mine));
  };
  const std::vector<int> cores = allowed_cpus();
  const double ranks_on_cores = ranks_with_equal(kernel_id() + cpu_ranges(cores)),
               ranks_on_host = ranks_with_equal(host_name());
  return ranks_on_cores > static_cast<double>(cores.size()) || ranks_on_host > cpu_quota();
}

double cpu_quota() { return cpu_quota(contents_of("/proc/self/cgroup").value_or(""), "/sys/fs/cgroup"); }

}  // namespace chorale
