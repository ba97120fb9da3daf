// The number of rows (one per token and chosen expert) that the experts of one rank receive from a micro-batch. A plan
// assumes that the router balances the experts. These numbers show how unbalanced the load can become.
#pragma once
#include <string>

#include <chorale/model.hpp>
#include "parallel/layout/layout.hpp"

namespace chorale::plan {

// Returns one line with the maximum over all blocks and over all ranks that divide the experts. Returns "" if each rank has
// all experts, or if the routing is forced, because the plan then knows the load.
std::string words_for_expert_loads(const ModelShape& shape, const Layout& layout, std::int64_t micro_batch);

}  // namespace chorale::plan
