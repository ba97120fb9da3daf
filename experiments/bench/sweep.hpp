// Measures all requested rows on all requested backends, one backend after the other. Each backend or row that cannot run is
// reported once, on stderr. If no backend can run, the caller reports an error. The series are returned in the order of the
// rows, even if they were measured in a different order.
#pragma once
#include <string>
#include <vector>

#include "experiments/bench/measure.hpp"
#include "experiments/common/command.hpp"
#include "src/base/error.hpp"
#include "src/base/machine_load.hpp"

namespace chorale::bench {

struct Sweep {
  std::vector<std::string> backends;
  WantedCases wanted;
  How how;
  TuningTable tuning = {};  // the tuning table that `auto` uses
  Machine machine = {};
  int threads = 2;         // ranks of the threads backend
  std::int64_t order = 1;  // seed of the random order of measurement; if it is 0, rows keep their order
  bool together = false;   // rows with equal BenchCase::question() are measured as one group; a stop discards partial groups
  std::int64_t staged_up_to = -1;  // longest message of ordinary memory that is staged; −1: as the machine file says
};

// The result of run(), which is collective. Rank 0 gets `series`; every rank gets `rows`, the number of rows to measure.
struct Outcome {
  std::vector<Series> series;
  std::int64_t rows = 0;
  bool stopped = false;                    // true: a signal ended run(), and `series` has only the completed series
  std::vector<OtherWork> others = {};      // on rank 0: load of other programs, by rank; empty if all is simulated
  std::vector<std::string> unusable = {};  // "nccl: no NVIDIA driver on this machine", for each backend that cannot run
  std::string busy = {};                   // on rank 0: the load of other programs, if it was large enough for a warning
  bool simulated() const;                  // whether all series are in virtual time
};
Outcome run(const Sweep& sweep, const Session& session);

// The error to report if there were no rows to measure. `processes`: the number of processes that were started.
Error nothing_measured(const Outcome& outcome, int processes);

}  // namespace chorale::bench
