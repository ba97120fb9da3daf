// The cases to prove. Each is one way to train the same model: first the layouts, then variations of a few of them, which
// change something else that must not change the bits.
#pragma once
#include <string>
#include <vector>

#include "parallel/training.hpp"

namespace chorale::prove {

struct Case {
  Layout layout;
  ByAxis backends, algorithms;
  TrainingOptions options;
  std::string variation = "";  // "bucket 1 KiB"
};

inline const std::vector<std::string> variations{"backend", "algorithm", "bucket", "micro-batch", "schedule", "recompute"};

// One case per layout, with a suitable micro-batch size. "all": every layout of 1 to `world` ranks that fits.
std::vector<Case> cases_of(const std::vector<std::string>& words, std::int64_t world, const Case& plain);
// Cases that differ from those layouts in one thing each. "all": from a few layouts that cover every strategy.
std::vector<Case> varied(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                         const std::vector<std::string>& what);
// A usage error if a requested algorithm does not fit an axis of the layout.
void require_algorithms(const Case& row);

}  // namespace chorale::prove
