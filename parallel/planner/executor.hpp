// Executes a step in virtual time. Runs the passes of the pipeline schedule, with their recorded kernels and calls, on the
// links of a system. One rank of each class (classes.hpp) represents the class.
//
//   class 0   F0 ─── F1 ─── ··B0 ───          a host's thread launches kernels; the accelerator runs them
//   call                 ├──────┤             after the last begin: latency, then bytes, which share links (links.hpp)
//
// The collectives of a group run one after the other, as on a stream.
//
// O(events · calls in flight). Equal inputs give bit-identical results.
#pragma once
#include "parallel/pipeline/simulate.hpp"
#include "parallel/planner/classes.hpp"
#include "parallel/planner/stage_cost.hpp"

namespace chorale {

// The time of one class, by activity. The seconds of all activities add up to the time at which the class is done.
struct ClassTime {
  KernelTime kernels;                   // time of all kernels
  double calls = 0;                     // time of exposed tp collectives
  double launching = 0;                 // time in which the accelerator waits for the thread that launches kernels
  std::map<std::string, double> waits;  // waits for calls in flight and for ranks that have not begun them, by axis
  double seconds = 0;
  std::int64_t sent = 0;    // bytes that one rank sends in all calls
  std::int64_t copied = 0;  // bytes that one rank copies between its memory and the host's memory
};

struct ExecutedStep {
  double seconds = 0;
  std::vector<ClassTime> classes;
  PipelineTimeline timeline;  // passes of the first class of each stage
};

struct Execution {
  const System& system;
  const RankClasses& ranks;
  std::vector<const StageCost*> costs;  // by class
  std::vector<std::int64_t> stages;     // by class
  const PipelineSchedule& schedule;
};

ExecutedStep execute(const Execution& execution);

}  // namespace chorale
