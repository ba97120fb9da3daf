// Chooses how many units ahead ZeRO-3 gathers values (BucketOptions::prefetch_units), by the predicted time of a step
// (step.hpp). If a unit computes for longer than its successor's gather takes, one unit ahead is enough. More units ahead
// help if small units come before a large one. They cost memory. A prediction counts a call's latency as work of its ranks,
// so it sees nothing of what is won where many calls wait for the network at once.
//
//   K = 1   compute  │ 0 │ 1 │···wait···│ 2 (large) │        K = 2   compute  │ 0 │ 1 │·wait·│ 2 (large) │
//           gather       1   2──────────┘                            gather     1  2──────────┘
//
// Every rank that asks gets the same answer, because it depends on the request alone.
#pragma once
#include "parallel/plan/plan.hpp"

namespace chorale {

struct PrefetchChoice {
  std::int64_t units = 1;
  std::string why = {};          // for people to read; "" if the layout has no choice
  std::string in_words() const;  // a line, or ""
};

// The fewest of 1, 2, 4 and 8 units with which a short step takes at most 1 % longer than the fastest of them, among those
// that stay within the memory limit. 1 if the machine file has no prices for the step.
PrefetchChoice fewest_units_ahead(PlanRequest request);

}  // namespace chorale
