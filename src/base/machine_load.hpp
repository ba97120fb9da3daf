// Compares two readings of the machine's load counters to find out whether other programs disturb a measurement.
//
//   /proc/stat      CPU seconds of all cores since boot: busy, and stolen (given to other machines by the hypervisor)
//   /proc/loadavg   mean number of running and waiting tasks over the last minute
//   getrusage       CPU seconds of this process, which are subtracted
//   /proc/net/dev   bytes that this host's network interfaces have sent and received, loopback excluded
//
// A reading consists of plain numbers, so tests need no busy machine.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale {

struct MachineReading {
  double at = 0;                       // time of the reading, in seconds of the clock
  double worked = 0, stolen = 0;       // busy and stolen CPU time of all cores, in seconds
  double own = 0;                      // CPU time of this process, or of all ranks on the machine, in seconds
  double load = 0;                     // mean number of running and waiting tasks
  double bytes_out = 0, bytes_in = 0;  // bytes that all network interfaces have sent and received since boot
};
// `root` is prepended to every path that is read, so that a test can provide its own files.
MachineReading read_machine(const Clock& clock, const std::filesystem::path& root = "/");

// The load that other processes caused between two readings.
struct OtherWork {
  double cores = 0;                    // mean number of cores that other programs kept busy
  double stolen = 0;                   // fraction of the machine's CPU time that the hypervisor gave to other virtual
                                       // machines
  double load = 0;                     // mean number of running and waiting tasks at the first reading
  int of_cores = 1;                    // cores of the machine
  double bytes_out = 0, bytes_in = 0;  // bytes that the host's network interfaces sent and received, including the traffic
                                       // of this process
  std::string host = {};               // name of the host

  // True if other programs use at least 0.25 cores and at least 2 % of all cores; an idle system uses less. Also true if the
  // hypervisor takes at least 2 % of the CPU time.
  bool busy() const;
  // "other programs use 1.6 of its 2 cores (load 3.1), the hypervisor takes 4 % of the machine's CPU time"
  std::string text() const;
  // "vm was busy: other programs use 1.6 of its 2 cores (load 3.1); times vary more than on a quiet machine"
  std::string warning(const std::string& tense) const;
};
// Returns the busy host on which other programs and the hypervisor take the most CPU time; null if no host is busy.
const OtherWork* busiest_of(const std::vector<OtherWork>& hosts);
std::string disturbance(const std::vector<OtherWork>& hosts);  // the warning about the busiest host, "vm was busy: …"; "" if
                                                               // no host is busy
OtherWork work_between(const MachineReading& before, const MachineReading& after, int cores);

// Measures the current load, while this process sleeps for look_seconds.
constexpr double look_seconds = 0.1;
OtherWork work_now(Clock& clock);

}  // namespace chorale
