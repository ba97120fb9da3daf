// What a search considers: divisions of the ranks among tp (within a host), pp, cp, dp and ep, with sp, ZeRO stages, hybrid
// shards, chunks and schedules; each with several micro-batches and recomputations.
#pragma once
#include <vector>

#include "experiments/plan/search.hpp"

namespace chorale::plan {

std::vector<Found> all_ways(const SearchRequest& request);
// A layout with each micro-batch and each recomputation.
std::vector<Found> ways_of(const Layout& layout, const SearchRequest& request);

}  // namespace chorale::plan
