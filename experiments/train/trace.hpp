// `--trace-steps 10:13`: what every rank did in those steps, on rank 0's clock, in one file for all of them and in the
// record.
//
//   trace.json   Chrome's trace events for ui.perfetto.dev and chrome://tracing: one process per rank, with tracks for the
//                steps, the passes, the pipeline's messages and each other axis; calls in flight have tracks of their own
//   /comm        the calls alone, a row each
//
// It costs one gather at the end, and memory on rank 0 for all of it, so every rank writes down only so much.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/run_record.hpp"
#include "parallel/training.hpp"

namespace chorale::train {

struct TraceSteps {
  std::int64_t first = 0, last = -1;  // nothing is asked for
  explicit operator bool() const { return first > 0; }
};
TraceSteps trace_steps(const std::string& text);  // "10:13", "10" or ""; a usage error for what is none of them

// The most spans that each of so many ranks may write down, and the most calls.
std::int64_t trace_room(std::int64_t ranks);

// Collective, after the last step; `ranks` on rank 0, which writes.
void write_trace(RunRecord& run, Training& training, const TraceSteps& steps, const mpi::Runtime& runtime,
                 const std::vector<RankFacts>& ranks);

}  // namespace chorale::train
