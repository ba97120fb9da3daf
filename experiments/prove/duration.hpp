// Estimates how long a proof will take, before its first case runs. Each case does as much work as the run on one rank,
// whose time is already known. Ranks that share a core run one after another. If each rank has a core, the speed-up is about
// half of the ideal speed-up.
#pragma once
#include <vector>

#include "experiments/prove/subject.hpp"

namespace chorale::prove {

double expected_seconds(const std::vector<Case>& cases, const References& references, std::int64_t world,
                        std::int64_t cores);

}  // namespace chorale::prove
