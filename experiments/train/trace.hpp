// With `--trace-steps 10:13`, writes the events of every rank in steps 10 to 13, on rank 0's clock, to trace.json and to the
// record.
//
//   trace.json   Chrome's trace events for ui.perfetto.dev and chrome://tracing. One process per rank, with tracks for the
//                steps, the passes, the layers, the kernels, the pipeline's messages and every other axis; calls in flight
//                have separate tracks
//   /comm        one row for each call
//
// A trace needs one gather at the end of the run. Rank 0 then holds the events of all ranks in memory, so the number of
// events per rank is limited.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/common/run_record.hpp"
#include "parallel/step/training.hpp"

namespace chorale::train {

struct TraceSteps {
  std::int64_t first = 0, last = -1;  // the first and the last traced step; by default, no step is traced
  explicit operator bool() const { return first > 0; }
};
TraceSteps trace_steps(const std::string& text);  // "10:13", "10" or ""; otherwise throws a usage error

// Returns the number of passes that each rank can record in a run of this many ranks. The same limit holds for calls, and
// for layers and kernels together.
std::int64_t trace_room(std::int64_t ranks);

// Collective, called after the last step. Rank 0 writes the trace, so only rank 0 needs `ranks`.
void write_trace(RunRecord& run, Training& training, const TraceSteps& steps, const mpi::Runtime& runtime,
                 const std::vector<RankFacts>& ranks);

}  // namespace chorale::train
