// Compares two ways to train and explains why one of them is slower. The losses and gains add up to the difference between
// the step times.
//
//   dp256.z3 takes 1.86 s more: it loses 4.46 s (products +3.24, wait: dp +0.92, attention +0.29) and gains 2.60 s
//   (wait: tp −1.92, …)
//   recompute full, because selective would need 91.2 GiB of 70.8 GiB
#pragma once
#include "experiments/plan/document.hpp"
#include "experiments/plan/search.hpp"
#include "experiments/plan/wording.hpp"

namespace chorale::plan {

void add_explained(Document& out, const Found& a, const Found& b, const SearchRequest& request, const Wording& as);

}  // namespace chorale::plan
