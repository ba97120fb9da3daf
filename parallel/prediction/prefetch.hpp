// ZeRO-3 can gather the parameter values of several units in advance. This file chooses the number of units
// (BucketOptions::prefetch_units), based on the predicted time of a step (cpu_step.hpp). Gathering one unit in advance is
// enough if the computation of each unit takes longer than the gather of the next unit. If small units precede a large one,
// gathering more units in advance saves time but needs more memory. A prediction counts a call's latency as work of the
// ranks that make the call. So in the prediction, the latencies of concurrent calls never overlap.
//
//   K = 1   compute  │ 0 │ 1 │···wait···│ 2 (large) │        K = 2   compute  │ 0 │ 1 │·wait·│ 2 (large) │
//           gather       1   2──────────┘                            gather     1  2──────────┘
//
// All ranks make the same choice, because the choice depends only on the request.
#pragma once
#include "parallel/plan/plan.hpp"

namespace chorale {

struct PrefetchChoice {
  std::int64_t units = 1;
  std::string why = {};          // explanation for the user; "" below ZeRO-3
  std::string in_words() const;  // one line for the user, or ""
};

// Predicts a short step for each of 1, 2, 4 and 8 prefetched units, as far as the memory limit allows. Returns the smallest
// number whose step takes at most 1 % longer than the fastest of these steps. Returns 1 if the time of the step cannot be
// predicted.
PrefetchChoice fewest_units_ahead(PlanRequest request);

}  // namespace chorale
