// `--trace-steps 10:13`: writes what every rank did in these steps, on rank 0's clock, to one file and to the record.
//
//   trace.json   Chrome's trace events for ui.perfetto.dev and chrome://tracing: one process per rank, with tracks for the
//                steps, the passes, the pipeline's messages and each other axis; calls in flight have tracks of their own
//   /comm        only the calls, one row each
//
// It costs one gather at the end. Rank 0 holds the events of all ranks in memory, so their number per rank is limited.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run_record.hpp"
#include "parallel/training.hpp"

namespace chorale::train {

struct TraceSteps {
  std::int64_t first = 0, last = -1;  // none
  explicit operator bool() const { return first > 0; }
};
TraceSteps trace_steps(const std::string& text);  // "10:13", "10" or ""; otherwise throws a usage error

// The most spans, and the most calls, that each of this many ranks may record.
std::int64_t trace_room(std::int64_t ranks);

// Collective, after the last step. Rank 0 has `ranks` and writes.
void write_trace(RunRecord& run, Training& training, const TraceSteps& steps, const mpi::Runtime& runtime,
                 const std::vector<RankFacts>& ranks);

}  // namespace chorale::train
