// How many rows the experts of one rank take from a micro-batch. A plan assumes that the router balances the experts; these
// numbers show what else may come.
#pragma once
#include <string>

#include "layers/shape.hpp"
#include "parallel/layout/layout.hpp"

namespace chorale::plan {

// One line; "" if each rank has all experts, or if the routing is forced and the plan knows it. The fullest rank counts,
// of all blocks and all ranks that divide the experts.
std::string words_for_expert_loads(const ModelShape& shape, const Layout& layout, std::int64_t micro_batch);

}  // namespace chorale::plan
