// The ways to train that a search considers. A way divides the ranks among tp (within a host), pp, cp, dp and ep. It also
// sets the ZeRO stage, hybrid shards, chunks, a schedule of the table, a micro-batch, the recomputation, and whether sp is
// used.
#pragma once
#include <vector>

#include "experiments/plan/search.hpp"

namespace chorale::plan {

std::vector<Found> all_ways(const SearchRequest& request);  // all that the flags allow
// The layout combined with each micro-batch and each recomputation.
std::vector<Found> ways_of(const Layout& layout, const SearchRequest& request);

}  // namespace chorale::plan
