// Whether other programs disturb what is measured: two readings of the machine, and what it did between them.
//
//   /proc/stat      CPU seconds of all cores since the machine started: at work, and stolen (the hypervisor gave them to other machines)
//   /proc/loadavg   tasks that ran or waited to run, as a mean of the last minute
//   getrusage       CPU seconds of this process, which are not other programs'
//
// Readings are plain numbers, so what is said of them is tested without a busy machine.
#pragma once
#include <filesystem>
#include <string>

#include "src/base/clock.hpp"

namespace chorale {

struct MachineReading {
  double at = 0;                  // seconds of the clock
  double worked = 0, stolen = 0;  // CPU seconds of all cores
  double own = 0;                 // CPU seconds of this process; of several processes, their sum
  double load = 0;
};
// `root` stands before the paths that are read; a test puts a folder of its own there.
MachineReading read_machine(const Clock& clock, const std::filesystem::path& root = "/");

// What a machine did beside our work.
struct OtherWork {
  double cores = 0;   // that other programs kept at work, in the mean
  double stolen = 0;  // share of the machine's time
  double load = 0;    // as the first reading has it
  int of_cores = 1;   // that the machine has

  // A quarter of a core, or a fiftieth of a large machine: less is what idle systems do. Of stolen time, a fiftieth.
  bool busy() const;
  std::string text() const;  // "other programs use 1.6 of its 2 cores (load 3.1), the hypervisor takes 4 % of its time"
};
OtherWork work_between(const MachineReading& before, const MachineReading& after, int cores);

// What the machine does now, in a moment in which this process sleeps.
constexpr double look_seconds = 0.1;
OtherWork work_now(Clock& clock);

}  // namespace chorale
