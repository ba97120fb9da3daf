// The traces of all ranks as Chrome's trace events, which ui.perfetto.dev and chrome://tracing open. A rank is a process,
// and has tracks:
//
//   steps               │ step 10                                                │ step 11 …
//   passes              │ data 0 │ forward 0    │ backward 0          │ optimizer │
//   pipeline                     │ wait recv │                                        messages between stages
//   communication dp                        start │           │ wait │               the part of its calls spent waiting
//     dp all_reduce                         └────────────────────────┘               a call under way, on a track of its own
//
// Times are in µs from the first event on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/trace.hpp"

namespace chorale::train {

// What a rank wrote down, on rank 0's clock.
struct RankTrace {
  std::string name;  // "rank 3: dp1 tp0 pp1"
  std::int64_t left_out = 0;
  std::vector<Trace::Span> spans;
  std::vector<Trace::Call> calls;
};

std::string chrome_trace(const std::vector<RankTrace>& ranks, const std::string& run_id);  // a file of JSON

}  // namespace chorale::train
