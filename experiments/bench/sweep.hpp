// All rows on all backends that were asked for, one backend after the other. What cannot run is a line on stderr, once. The
// series come back in the order of the rows, in whatever order they were measured.
#pragma once
#include <string>
#include <vector>

#include "experiments/bench/measure.hpp"
#include "experiments/command.hpp"
#include "src/base/machine_load.hpp"

namespace chorale::bench {

struct Sweep {
  std::vector<std::string> backends;
  Wanted wanted;
  How how;
  TuningTable tuning = {};  // that auto goes by
  int threads = 2;          // ranks of the backend that is threads of one process
  std::int64_t order = 1;   // the seed of the order in which rows are measured; 0: as they come
  bool together = false;    // rows of one question are measured one after the other, and stopping leaves none half answered
};

// Every rank calls it. The series are on rank 0; how many there are, everybody learns.
struct Outcome {
  std::vector<Series> series;
  std::int64_t rows = 0;
  bool stopped = false;                // then only those series are there that were over
  std::vector<OtherWork> others = {};  // of each rank's machine, on rank 0
};
Outcome run(const Sweep& sweep, const Session& session);

}  // namespace chorale::bench
