// ZeRO-3 can gather the values of several units in advance. This file chooses the number of units
// (BucketOptions::prefetch_units). The choice depends on the predicted time of a step (step.hpp). Gathering one unit in
// advance is enough if each unit computes for longer than the gather of the next unit takes. If small units precede a large
// one, gathering more units in advance saves time, but it costs memory. A prediction counts a call's latency as work of its
// ranks. So the prediction does not show that the latencies of concurrent calls can overlap.
//
//   K = 1   compute  │ 0 │ 1 │···wait···│ 2 (large) │        K = 2   compute  │ 0 │ 1 │·wait·│ 2 (large) │
//           gather       1   2──────────┘                            gather     1  2──────────┘
//
// All ranks make the same choice, because it depends only on the request.
#pragma once
#include "parallel/plan/plan.hpp"

namespace chorale {

struct PrefetchChoice {
  std::int64_t units = 1;
  std::string why = {};          // explanation for the user; "" if the layout leaves no choice
  std::string in_words() const;  // one line for the user, or ""
};

// Predicts a short step with 1, 2, 4 and 8 units in advance, as far as the memory limit allows. Returns the smallest number
// whose step takes at most 1 % longer than the fastest of these steps. Returns 1 if the machine file has no prices for the
// step.
PrefetchChoice fewest_units_ahead(PlanRequest request);

}  // namespace chorale
