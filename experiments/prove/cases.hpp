// The cases to prove. Each case trains the same model in a different way, and all results must be bit-identical. The layouts
// come first. The variations of layouts follow; each has one additional change, such as a different algorithm or bucket
// size.
#pragma once
#include <string>
#include <vector>

#include "experiments/train/dataset.hpp"
#include "parallel/step/training.hpp"

namespace chorale::prove {

struct Case {
  Layout layout;
  ByAxis backends, algorithms;
  TrainingOptions options;
  train::DocumentMask documents;  // the documents of the data; a variation can replace them
  bool few_labels = false;        // the first two thirds of a sample have no targets, so some context ranks have no targets
  std::string variation = "";     // "bucket 1 KiB"
};

// Returns one case per layout in `words`, with a suitable micro-batch size. The entry "all" means every layout of 1 to
// `world` ranks that fits. All other settings are copied from `plain`. The axis order is copied too, unless the layout names
// one.
std::vector<Case> cases_of(const std::vector<std::string>& words, std::int64_t world, const Case& plain);
// For each layout in `words`, returns cases with one additional change. `what` names the kinds of changes (variations.hpp).
// In `words`, "all" means a few layouts that together cover every strategy.
std::vector<Case> varied(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                         const std::vector<std::string>& what);
// For each layout in `words`, returns cases with one change of each kind in `what`. Up to 4 ranks, every combination is a
// case. On more ranks there are only a few cases, which together contain every pair of changes.
std::vector<Case> combined(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                           const std::vector<std::string>& what);
inline constexpr std::int64_t most_ranks_of_products = 4;
// Throws a usage error if a requested algorithm does not fit an axis of the case's layout.
void require_algorithms(const Case& row);

}  // namespace chorale::prove
