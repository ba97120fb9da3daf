// How long a proof will take, estimated before its first case: each case is as much work as the run on one rank, which has
// been timed by then. Ranks that share cores work one after another; ranks with a core each gain about half of what they
// could.
#pragma once
#include <vector>

#include "experiments/prove/subject.hpp"

namespace chorale::prove {

double expected_seconds(const std::vector<Case>& cases, const References& references, std::int64_t world,
                        std::int64_t cores);

}  // namespace chorale::prove
