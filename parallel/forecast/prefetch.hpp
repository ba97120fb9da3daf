// Chooses how many units in advance ZeRO-3 gathers values (BucketOptions::prefetch_units), by the predicted time of a step
// (step.hpp). If a unit computes for longer than its successor's gather takes, gathering one unit in advance is enough.
// Gathering more units in advance helps if small units come before a large one, but it costs memory. A prediction counts a
// call's latency as work of its ranks. So it does not show the gain from many calls that wait for the network concurrently.
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

// Tries 1, 2, 4 and 8 units, if they stay within the memory limit. Returns the smallest number with which a short step takes
// at most 1 % longer than the fastest of these steps. Returns 1 if the machine file has no prices for the step.
PrefetchChoice fewest_units_ahead(PlanRequest request);

}  // namespace chorale
