// Whether other programs disturb a measurement, from two readings of the machine.
//
//   /proc/stat      CPU seconds of all cores since boot: busy, and stolen (given to other machines by the hypervisor)
//   /proc/loadavg   mean number of running and waiting tasks over the last minute
//   getrusage       CPU seconds of this process, to be subtracted
//
// Readings are plain numbers, so tests need no busy machine.
#pragma once
#include <filesystem>
#include <string>

#include "src/base/clock.hpp"

namespace chorale {

struct MachineReading {
  double at = 0;                  // seconds of the clock
  double worked = 0, stolen = 0;  // CPU seconds of all cores
  double own = 0;                 // CPU seconds of this process, or the sum over several
  double load = 0;
};
// `root` is prepended to every path; a test passes a folder of its own.
MachineReading read_machine(const Clock& clock, const std::filesystem::path& root = "/");

// What the machine did besides our work.
struct OtherWork {
  double cores = 0;   // mean number of cores that other programs kept busy
  double stolen = 0;  // fraction of the machine's time
  double load = 0;    // from the first reading
  int of_cores = 1;   // cores of the machine

  // True if others use a quarter of a core (on a large machine, a fiftieth of its cores: idle systems use less) or 2 % is
  // stolen.
  bool busy() const;
  std::string text() const;  // "other programs use 1.6 of its 2 cores (load 3.1), the hypervisor takes 4 % of its time"
};
OtherWork work_between(const MachineReading& before, const MachineReading& after, int cores);

// Measures the load now; this process sleeps for look_seconds meanwhile.
constexpr double look_seconds = 0.1;
OtherWork work_now(Clock& clock);

}  // namespace chorale
