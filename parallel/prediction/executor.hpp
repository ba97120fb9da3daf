// Executes a step in simulated time. The passes of the pipeline schedule run with their recorded kernels and calls, and
// calls share the links of the system. Only one rank of each class of similar ranks is executed (classes.hpp).
//
//   class 0   F0 ─── F1 ─── ··B0 ───          a host thread launches kernels; the accelerator runs them
//   call                 ├──────┤             after the last begin: latency, then bytes, which share links (max_min.hpp)
//
// The collectives of a group run one after the other, as on a stream.
//
// O(events · calls in flight). Equal inputs give bit-identical results.
#pragma once
#include "parallel/pipeline/simulate.hpp"
#include "parallel/prediction/classes.hpp"
#include "parallel/prediction/stage_cost.hpp"

namespace chorale {

// The time, in seconds, that one class spends on each activity. These times add up to the time at which the class is done.
struct ClassTime {
  KernelTime kernels;                   // time of all kernels
  double calls = 0;                     // time of exposed tp collectives
  double launching = 0;                 // time in which the accelerator waits for the thread that launches kernels
  std::map<std::string, double> waits;  // by axis: time spent waiting for calls, and for ranks that have not begun the calls
  double seconds = 0;
  std::int64_t sent = 0;    // bytes that one rank sends in all calls
  std::int64_t copied = 0;  // bytes that one rank copies between accelerator memory and host memory
};

struct ExecutedStep {
  double seconds = 0;
  std::vector<ClassTime> classes;
  PipelineTimeline timeline;  // passes of the first class of each stage
};

struct Execution {
  const System& system;
  const RankClasses& ranks;
  std::vector<const StageCost*> costs;  // indexed by class
  std::vector<std::int64_t> stages;     // indexed by class
  const PipelineSchedule& schedule;
};

ExecutedStep execute(const Execution& execution);

}  // namespace chorale
