// Measures and records the load of other programs on the run's hosts. If these programs disturb the run, prints a one-line
// warning. All members of MachineWatch are collective.
//
//   MachineWatch watch(session);      measures for 0.1 s while no rank works; a suite measures once for all its runs
//   watch.warn(log);                  "vm is busy: other programs use 1.6 of its 2 cores (load 3.1): …"
//   …                                 the run
//   watch.finish(log)                 measures from the constructor to here; warns unless warn() has already warned. The
//                                     kernel counts in ticks, so a run of under a second keeps the first measurement
#pragma once
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "src/base/log.hpp"
#include "src/base/machine_load.hpp"
#include "src/record/recorder.hpp"

namespace chorale {

// Two readings of a rank's machine. Ranks with equal `kernel` read the same machine.
struct RankReading {
  std::string kernel, host;
  int cores = 1;
  MachineReading before, after;
};
// For each rank, the load on its machine that this run's ranks did not cause.
std::vector<OtherWork> other_work(const std::vector<RankReading>& ranks);

class MachineWatch {
 public:
  explicit MachineWatch(const Session& session);
  void warn(Log& log);
  std::vector<OtherWork> finish(Log& log);               // on rank 0, one entry per rank; empty on the other ranks
  const std::string& warned() const { return warned_; }  // on rank 0: the load in the warning; "" if there was none

 private:
  std::vector<RankReading> gathered() const;  // on rank 0: the first and a second reading of every rank
  void say(Log& log, const std::vector<RankReading>& ranks, const std::string& tense);

  const mpi::Runtime& runtime_;
  Clock& clock_;
  bool speaks_;  // whether a warning is still allowed; false for a run of a suite, because the suite warns
  std::string warned_;
  MachineReading before_;
  std::vector<RankReading> first_look_;
};

// Writes the load into /ranks, so that reports can repeat the warning (report/disturbed.hpp). Writes nothing if the load was
// not measured.
void write_other_work(Recorder& recorder, const std::vector<OtherWork>& ranks);

}  // namespace chorale
