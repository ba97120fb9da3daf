#include "src/base/machine_load.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
}

}  // namespace

MachineReading read_machine(const Clock& clock, const std::filesystem::path& root) {
  MachineReading reading{.at = clock.seconds(), .own = own_seconds()};
  std::string cpu;  // /proc/stat begins with the line for all cores
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
  std::ifstream(root / "proc/stat") >> cpu >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >>
      stolen;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  reading.worked = (user + nice + system + interrupts + soft_interrupts) / ticks;
  reading.stolen = stolen / ticks;
  std::ifstream(root / "proc/loadavg") >> reading.load;
  std::ifstream interfaces(root / "proc/net/dev");
  for (std::string line; std::getline(interfaces, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) == "lo") continue;
    double in = 0, out = 0, other = 0;
    std::istringstream counts(line.substr(colon + 1));
    counts >> in;
    for (int column = 1; column < 8; ++column) counts >> other;
    counts >> out;
    reading.bytes_in += in;
    reading.bytes_out += out;
  }
  return reading;
}

bool OtherWork::busy() const { return cores >= std::max(0.25, 0.02 * of_cores) || stolen >= 0.02; }

std::string OtherWork::text() const {
  const std::string steal = fmt::format("the hypervisor takes {:.0f} % of the machine's CPU time", 100 * stolen);
  const std::string others = fmt::format("other programs use {:.1f} of its {} cores (load {:.1f})", cores, of_cores, load);
  return stolen < 0.02 ? others : others + ", " + steal;
}

std::string OtherWork::warning(const std::string& tense) const {
  return fmt::format("{} {} busy: {}; times vary more than on a quiet machine", host, tense, text());
}

const OtherWork* busiest_of(const std::vector<OtherWork>& hosts) {
  const auto busiest = std::ranges::max_element(
      hosts, {}, [](const OtherWork& work) { return std::pair(work.busy(), work.cores + work.stolen); });
  return busiest == hosts.end() || !busiest->busy() ? nullptr : &*busiest;
}

std::string disturbance(const std::vector<OtherWork>& hosts) {
  const OtherWork* const busiest = busiest_of(hosts);
  return busiest ? busiest->warning("was") : "";
}

OtherWork work_between(const MachineReading& before, const MachineReading& after, int cores) {
  OtherWork work{.load = before.load,
                 .of_cores = std::max(1, cores),
                 .bytes_out = after.bytes_out - before.bytes_out,
                 .bytes_in = after.bytes_in - before.bytes_in};
  const double seconds = after.at - before.at;
  if (seconds <= 0) return work;
  const double others = after.worked - before.worked - (after.own - before.own);
  work.cores = std::clamp(others / seconds, 0.0, static_cast<double>(work.of_cores));
  work.stolen = std::clamp((after.stolen - before.stolen) / (seconds * work.of_cores), 0.0, 1.0);
  return work;
}

OtherWork work_now(Clock& clock) {
  const MachineReading before = read_machine(clock);
  clock.sleep(look_seconds);
  return work_between(before, read_machine(clock), online_cores());
}

}  // namespace chorale
