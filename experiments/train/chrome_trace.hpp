// Writes the traces of all ranks as Chrome trace events, for ui.perfetto.dev and chrome://tracing. Each rank is a process
// with these tracks:
//
//   steps               │ step 10                                                │ step 11 …
//   passes              │ data 0 │ forward 0    │ backward 0          │ optimizer │
//   layers                       │ block.0 │ …  │                                    layers in layers, as a call stack
//   kernels                        │ │ │ │ │                                        each kernel, next to its layer
//   pipeline                     │ wait recv │                                        messages between stages
//   communication dp                        start │           │ wait │               time that the rank spends on calls
//     dp all_reduce                         └────────────────────────┘               a call in flight, on its own track
//
// Times are in µs since the earliest event of any rank.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/trace.hpp"

namespace chorale::train {

// The events of one rank, with times on rank 0's clock.
struct RankTrace {
  std::string name;           // "rank 3: dp1 tp0 pp1"
  std::int64_t left_out = 0;  // number of events that the rank did not record, because its trace was full
  std::vector<Trace::Span> spans;
  std::vector<Trace::Inner> inner;
  std::vector<Trace::Call> calls;
};

std::string chrome_trace(const std::vector<RankTrace>& ranks, const std::string& run_id);  // JSON text

}  // namespace chorale::train
