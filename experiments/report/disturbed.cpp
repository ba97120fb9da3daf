#include "experiments/report/disturbed.hpp"

#include <algorithm>
#include <set>

#include "src/base/machine_load.hpp"

namespace chorale::report {
namespace {

// Returns nothing if no load was measured. Older records do not have the number of cores of a host.
std::vector<OtherWork> work_in(const RecordGroup& ranks) {
  const std::vector<double> cores = ranks.numbers("others"), stolen = ranks.numbers("stolen"), load = ranks.numbers("load"),
                            of = ranks.numbers("cores");
  const std::vector<std::string> hosts = ranks.words("host");
  std::vector<OtherWork> work;
  for (std::size_t rank = 0; rank < std::min({cores.size(), stolen.size(), load.size(), of.size(), hosts.size()}); ++rank)
    work.push_back({.cores = cores[rank],
                    .stolen = stolen[rank],
                    .load = load[rank],
                    .of_cores = static_cast<int>(of[rank]),
                    .host = hosts[rank]});
  return work;
}

}  // namespace

std::string disturbance_of(const RecordSet& records) {
  std::vector<OtherWork> all;
  std::set<const RecordSource*> suites;  // suites already read; a suite measures the load once for all its runs
  for (const RecordedRun& run : records.runs) {
    if (!run.source || run.simulated() || suites.contains(run.source.get())) continue;
    std::vector<OtherWork> work = run.prefix.empty() ? std::vector<OtherWork>{} : work_in(run.source->group("/ranks"));
    if (!work.empty())
      suites.insert(run.source.get());
    else
      work = work_in(run.group("ranks"));
    all.insert(all.end(), work.begin(), work.end());
  }
  return disturbance(all);
}

}  // namespace chorale::report
